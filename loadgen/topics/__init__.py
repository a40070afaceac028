"""Topics: generating them, reading lists, storing them as files, loading them into servers."""
