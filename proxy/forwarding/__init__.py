"""Forwarding of admin and lookup REST to a broker."""
