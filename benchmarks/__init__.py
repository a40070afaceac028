"""Benchmarks against a user's alternatives: python -m benchmarks."""
