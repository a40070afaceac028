"""Scheduling of work: long work in short steps on the event loop, or in worker processes."""
