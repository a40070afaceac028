"""Consumers on a backlog, and producers whose broker stops reading, under one memory limit."""
