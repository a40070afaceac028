"""Subscriptions: acknowledgements, and dispatch of messages to consumers."""
