"""Simulated connections: the buffers of two kernels, the readers, and both ends."""
