"""Benchmark of watches, with its processes."""
