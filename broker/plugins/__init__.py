"""Plug-ins by which operators decide which topics a client's listing contains (PIP-452)."""
