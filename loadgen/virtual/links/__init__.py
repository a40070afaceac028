"""Simulated connections: buffers of two kernels, readers, and both ends."""
