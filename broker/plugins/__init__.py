"""Plug-ins of operators, which decide which topics a client's topic list contains (PIP-452)."""
