"""Admin and lookup REST that is forwarded to a broker."""
