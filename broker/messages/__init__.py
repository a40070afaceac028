"""Loaded topics, their producers and subscriptions, and the stores of their messages."""
