"""Clients of a load: how they connect, ask, read and are recorded."""
