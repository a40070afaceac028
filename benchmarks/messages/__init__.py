"""Benchmarks of messages: publishing, dispatch, latency, and memory of idle consumers."""
