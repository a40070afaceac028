"""Watchers of topic lists, in the process and over the wire."""
