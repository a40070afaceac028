"""Tasks: the part of a scenario that one process drives, and its report."""
