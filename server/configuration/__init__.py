"""Configuration files of broker and proxy: their keys, types, bounds and units."""
