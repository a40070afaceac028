"""Runs one task of a load: its clients, their connections, the rows that they write."""
