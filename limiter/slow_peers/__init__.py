"""Peers that take nothing of what they are sent: how they are found, deferred and closed."""
