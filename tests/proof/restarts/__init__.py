"""Servers restarted and killed beneath official clients."""
