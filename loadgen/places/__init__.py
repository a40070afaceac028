"""A run of a scenario from start to end, and the folder written."""
