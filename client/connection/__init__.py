"""Connections to brokers and proxies, opened once, shared, and kept alive."""
