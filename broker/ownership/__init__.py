"""Ownership of bundles of topics by brokers."""
