"""Calls of the REST that a server describes."""
