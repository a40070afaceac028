"""Benchmarks of the servers' connections: large answers, small frames, and a proxy's pipes."""
