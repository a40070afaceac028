"""Memory of topic listings: one budget of heap, one of direct memory (PIP-442)."""
