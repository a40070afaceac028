"""Subscriptions of non-persistent topics, which drop messages without a ready consumer."""
