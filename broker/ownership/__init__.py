"""Bundles of topics, and the broker that serves each."""
