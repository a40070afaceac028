"""Sorted sets of names with structural sharing between versions."""
