"""Subscriptions: what consumers have acknowledged, and which of them gets which message."""
