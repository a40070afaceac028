"""Topics: generated, read from a list or a server, stored as files, and loaded into a server."""
