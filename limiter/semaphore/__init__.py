"""A semaphore of bytes, with a bounded queue of waiters and a timeout (PIP-442)."""
