"""Messages that the client sends and receives: ids, batches, chunks and compression."""
