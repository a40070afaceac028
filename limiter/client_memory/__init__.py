"""The memory limit of a client, shared by its producers and consumers (PIP-74)."""
