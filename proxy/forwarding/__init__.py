"""Forwarding of HTTP requests to the admin and lookup REST API of a broker."""
