"""Benchmarks of the limiter: permits, and waiting requests."""
