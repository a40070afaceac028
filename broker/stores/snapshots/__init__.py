"""Immutable in-memory versions of a namespace: topics, partition counts and properties."""
