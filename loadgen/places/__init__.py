"""A run of a scenario from first to last, and the folder that it writes."""
