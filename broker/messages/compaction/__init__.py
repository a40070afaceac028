"""Compaction: keeping the last message of each key of a topic."""
