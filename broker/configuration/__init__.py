"""Keys of the broker: those of a file, and those that change while it runs."""
