"""Asynchronous work of a request: its tasks, its turns of the loop, and sharing it."""
