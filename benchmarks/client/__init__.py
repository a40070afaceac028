"""Benchmarks that compare the client library with the official client."""
