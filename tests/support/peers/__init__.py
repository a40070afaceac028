"""Peers that a test controls byte by byte, or question by question."""
