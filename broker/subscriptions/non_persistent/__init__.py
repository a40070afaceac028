"""Subscriptions of topics that store nothing: who has room hears a message, others miss it."""
