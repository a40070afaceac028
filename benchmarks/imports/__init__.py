"""Benchmark of imports into memory."""
