"""Growth: what commands, calls, watches, imports and starts cost with more and more names."""
