"""Topic patterns: compiled, bounded, and applied to columns of names."""
