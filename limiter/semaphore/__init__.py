"""A semaphore of bytes whose callers wait in a queue with a bound and a timeout (PIP-442)."""
