"""Benchmarks of connections: large answers, and small frames."""
