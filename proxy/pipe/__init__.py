"""Pipes, which copy bytes between a client and a broker that the client names."""
