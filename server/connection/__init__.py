"""A client's connection to a broker or proxy."""
