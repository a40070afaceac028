"""Configuration files of broker and proxy: keys, types, bounds and units."""
