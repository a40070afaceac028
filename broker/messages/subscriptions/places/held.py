"""A consumer's pending entry in one number: remaining messages and key hash.

A tuple per entry would take three times the memory, and the garbage collector's time.
"""

from __future__ import annotations

HASH_BITS = 17
"""The remaining messages are above this many bits."""
HASHES = (1 << HASH_BITS) - 1
"""Mask of the hash bits; 0 means no hash."""
