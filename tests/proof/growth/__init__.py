"""Growth: costs of commands, calls, watches, imports and starts with more and more names."""
