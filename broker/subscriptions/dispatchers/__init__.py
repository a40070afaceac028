"""Dispatchers: they read the entries of a subscription and hand them to its consumers."""
