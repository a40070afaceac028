"""Sweeps: one scenario with many values of its keys, in virtual time, and the limit that passes."""
