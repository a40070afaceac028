"""Planted secrets, and the search for them in all output of a run."""
