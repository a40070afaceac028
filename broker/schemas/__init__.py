"""Schemas of topics: their versions, and whether a new one is compatible."""
