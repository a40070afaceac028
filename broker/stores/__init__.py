"""Stores of topics: one interface, in memory, in SQLite, in PostgreSQL."""
