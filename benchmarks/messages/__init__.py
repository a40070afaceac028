"""Benchmarks of messages: publishing, dispatch, and end-to-end latency."""
