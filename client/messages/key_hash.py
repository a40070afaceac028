"""The hashes by which keys are spread over partitions, as each official client makes them."""

from __future__ import annotations

import mmh3

_MASK = 0x7FFFFFFF


def java_string_hash(key: str) -> int:
    """Return Java's String.hashCode, without its sign: the Java client's default."""
    value = 0
    units = key.encode("utf-16-le", errors="surrogatepass")
    for at in range(0, len(units), 2):
        value = (31 * value + (units[at] | units[at + 1] << 8)) & 0xFFFFFFFF
    return value & _MASK


def murmur3_32_hash(key: str) -> int:
    """Return the Murmur3 hash of 32 bits (seed 0), without its sign."""
    return mmh3.hash(key.encode(errors="surrogateescape"), 0, signed=False) & _MASK
