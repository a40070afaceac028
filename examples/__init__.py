"""Runnable examples: client programs, plug-ins, and simulations with the real limiter."""
