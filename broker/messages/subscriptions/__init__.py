"""Subscriptions, which dispatch messages to consumers and record acknowledgements."""
