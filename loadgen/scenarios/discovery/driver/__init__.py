"""The driver of one client: what it asks, when, and what becomes of it; no sockets."""
