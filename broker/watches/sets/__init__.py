"""Sets of the topic names that match watched patterns, built once and updated by changes."""
