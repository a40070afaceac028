"""Planted secrets, and the search for them in all that a run leaves and shows."""
