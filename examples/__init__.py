"""Runnable examples: the real limiter on a virtual clock, with every assumption stated."""
