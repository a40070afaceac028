"""Subscriptions of non-persistent topics: messages without a ready consumer are lost."""
