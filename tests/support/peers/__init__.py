"""Peers driven byte by byte, or request by request."""
