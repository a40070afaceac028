"""Flow control of a connection: pausing and resuming the reads from a peer (PIP-434)."""
