"""A client's connection to a broker or proxy: dispatch of commands, limits, listeners."""
