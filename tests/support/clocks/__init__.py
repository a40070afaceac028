"""Clocks that a test turns by hand, and waiting until nothing is left to run."""
