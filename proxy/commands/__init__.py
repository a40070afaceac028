"""Handlers of the commands that a proxy receives from clients, and the table of commands."""
