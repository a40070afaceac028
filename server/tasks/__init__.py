"""Asynchronous work of requests: tasks, long work in steps, shared work."""
