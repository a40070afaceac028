"""Reports on clients: coming back over time by family, latencies by what they differ in."""
