"""Dispatchers: reading a subscription's entries and delivering them to consumers."""
