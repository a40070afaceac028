"""Compaction: of the messages of a topic, the last one of each key."""
