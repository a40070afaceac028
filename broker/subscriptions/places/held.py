"""What a consumer holds of one entry, in one number: the messages left and the hash of the key.

A tuple each would cost three times the memory, and the garbage collector's time.
"""

from __future__ import annotations

HASH_BITS = 17
"""Bits of the hash of a key, the lowest ones; 0 stands for none."""


def messages_held(number: int) -> int:
    """Return the messages that are left."""
    return number >> HASH_BITS


def hash_held(number: int) -> int:
    """Return the hash of the key."""
    return number & (1 << HASH_BITS) - 1
