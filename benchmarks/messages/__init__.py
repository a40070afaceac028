"""Benchmarks of messages: publishing, dispatch, and the way from one to the other."""
