"""Benchmarks of the load generator's own work: creating topics, aggregating requests."""
