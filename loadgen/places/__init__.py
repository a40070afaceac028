"""Runs of scenarios from start to end, and the folders that they write."""
