"""One memory limit for the producers and consumers of a client (PIP-74)."""
