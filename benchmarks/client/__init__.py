"""Benchmarks of the client library against the official client."""
