"""Benchmarks that compare this project with alternatives: ``python -m benchmarks``."""
