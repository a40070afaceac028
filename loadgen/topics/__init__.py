"""Topics: made up, of a list, or a server's; kept as a corpus, and loaded into a server."""
