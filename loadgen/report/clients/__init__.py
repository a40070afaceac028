"""What became of clients: coming back over time by family, and latencies by what they differ in."""
