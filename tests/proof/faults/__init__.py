"""Injected faults beneath official clients."""
