"""Calls of the REST API that a server describes."""
