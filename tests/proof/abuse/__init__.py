"""Hostile peers in separate processes, and healthy clients that must not notice them."""
