"""Topic patterns: compiled, bounded, and applied to many names at once."""
