"""Compaction of topics, which keeps only the last message of each key."""
