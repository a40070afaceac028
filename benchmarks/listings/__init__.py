"""Benchmarks of topic listings, with their client and the servers to compare with."""
