"""One task: the part of a scenario that one process drives, and what it reports."""
