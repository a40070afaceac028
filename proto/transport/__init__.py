"""Connections: sockets, queues of outgoing bytes, TLS and keep-alive."""
