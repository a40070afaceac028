"""Schemas of topics: versions and compatibility."""
