"""The benchmark of watches, with its processes."""
