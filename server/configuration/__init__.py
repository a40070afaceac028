"""Configuration files of broker and proxy: their keys, with types, bounds and units."""
