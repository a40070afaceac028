"""Messages as a client has them: their ids, parts, batches, chunks, compression."""
