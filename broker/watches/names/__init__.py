"""Sorted sets of names, where a change shares all but what it touches."""
