"""Flow control of one connection: when a peer is read no more, and when again (PIP-434)."""
