"""A client's connection, as broker and proxy serve it."""
