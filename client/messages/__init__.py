"""The client's messages: ids, batches, chunks, compression."""
