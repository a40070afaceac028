"""Servers under load: their processes, memory, metrics and addresses."""
