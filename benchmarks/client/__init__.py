"""Benchmarks of the client library beside the official one."""
