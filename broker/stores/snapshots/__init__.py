"""Immutable snapshots of a namespace in memory: topics, partition counts and properties."""
