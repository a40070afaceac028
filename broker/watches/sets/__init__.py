"""Sets of topic names that match watched patterns, built once and then updated by changes."""
