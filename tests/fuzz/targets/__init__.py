"""Targets: each runs bytes, and declares the errors that answer bad bytes."""
