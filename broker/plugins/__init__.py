"""Listing plug-ins of an operator's own, asked by client properties (PIP-452)."""
