"""Connections to brokers and proxies: opened once, shared, kept alive."""
