"""Handlers of the commands that clients send to a proxy, and the table of these commands."""
