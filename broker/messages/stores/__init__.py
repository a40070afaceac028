"""Stores of messages: one interface, in memory and in a database."""
