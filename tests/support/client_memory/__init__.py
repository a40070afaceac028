"""Consumers with a hand-driven broker and application."""
