"""Subscriptions of non-persistent topics, which drop messages if no consumer has permits."""
