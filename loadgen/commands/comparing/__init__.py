"""The commands that run repeats and compare runs."""
