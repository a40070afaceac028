"""Errors at each step of attaching, and the clients' reactions."""
