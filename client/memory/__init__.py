"""The memory limit of a client's producers and consumers (PIP-74)."""
