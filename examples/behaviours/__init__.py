"""Behaviours of clients that loadgen does not ship."""
