"""Servers that are restarted and killed beneath official clients."""
