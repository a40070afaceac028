"""Forwarding of HTTP requests to the REST APIs of a broker: admin and lookup."""
