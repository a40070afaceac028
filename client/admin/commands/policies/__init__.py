"""Verbs of policies, from one table."""
