"""The configuration of broker and proxy: its keys, with their types, bounds and units."""
