"""The hash of keys, consumers and topics in Pulsar."""

from __future__ import annotations

import mmh3


def murmur(data: bytes) -> int:
    """Return the Murmur3 hash (32 bit, x86, seed 0) of some bytes without the sign: 0..2^31-1.

    Source: upstream Murmur3_32Hash.makeHash.
    """
    return mmh3.hash(data, 0, signed=False) & 0x7FFFFFFF
