"""Handlers of the binary protocol's commands, and the table of all handlers."""
