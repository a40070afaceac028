"""Benchmarks of the limiter: permits, and requests that wait for them."""
