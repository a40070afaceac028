"""Dispatchers, which read a subscription's entries and deliver them to its consumers."""
