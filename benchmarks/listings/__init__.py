"""Benchmarks of listings, with their client and their yardsticks."""
