"""Stores of namespaces and topics: in memory, SQLite or PostgreSQL, behind one interface."""
