"""Immutable sorted sets of topic names, whose versions share what they have in common."""
