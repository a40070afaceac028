"""Operators' plug-ins that list topics by client properties (PIP-452)."""
