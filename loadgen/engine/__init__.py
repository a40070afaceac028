"""Runs one task of a load: clients, connections, rows."""
