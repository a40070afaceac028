"""The benchmark of topic watches, with its processes."""
