"""Benchmarks of the limiter: uncontended permits, and waiting requests."""
