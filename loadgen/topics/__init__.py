"""Topics: generated, listed or a server's; stored as a corpus, and loaded into a server."""
