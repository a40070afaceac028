"""The memory limit that a client's producers and consumers share (PIP-74)."""
