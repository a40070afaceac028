"""Hashes for spreading keys over partitions; each official client has its own default."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mmh3

from client.messages.enums import HashingScheme

if TYPE_CHECKING:
    from collections.abc import Callable

_31_BITS = 0x7FFFFFFF
_32_BITS = 0xFFFFFFFF
_64_BITS = 0xFFFFFFFFFFFFFFFF
_STEP = 0x9E3779B97F4A7C15
_FACTOR = 0xDF442D22CE4859B9
_BOOST_START = 0xE9B6294983B62ACE
_WORD_BYTES = 8


def key_hash(scheme: HashingScheme, key: str) -> int:
    """Return the hash of a key: 0 to 2^31 - 1."""
    return _HASHES[scheme](key)


def boost_hash(key: str) -> int:
    """Return Boost's hash of a string: default of the C++, Python and Node clients.

    The algorithm of Boost 1.81 and later, on 64-bit machines: eight-byte words, and the rest as a
    final word, are multiplied into the hash, folding the halves of each product by XOR.
    """
    data = key.encode(errors="surrogateescape")
    step = _BOOST_START
    value = step ^ len(data)
    for at in range(0, len(data) // _WORD_BYTES * _WORD_BYTES + 1, _WORD_BYTES):
        word = int.from_bytes(data[at : at + _WORD_BYTES], "little")
        step = (step + _STEP) & _64_BITS
        value ^= _folded_product((word + step) & _64_BITS)
    return _folded_product((value + step) & _64_BITS) & _31_BITS


def _folded_product(value: int) -> int:
    product = value * _FACTOR
    return product >> 64 ^ product & _64_BITS


def java_string_hash(key: str) -> int:
    """Return the hash of a Java string: default of the Java and Go clients."""
    value = 0
    units = key.encode("utf-16-le", errors="surrogatepass")
    for at in range(0, len(units), 2):
        value = (31 * value + (units[at] | units[at + 1] << 8)) & _32_BITS
    return value & _31_BITS


def murmur3_32_hash(key: str) -> int:
    """Return the 32-bit Murmur3 hash with seed 0, available in every client."""
    data = key.encode(errors="surrogateescape")
    return mmh3.hash(data, 0, signed=False) & _31_BITS


_HASHES: dict[HashingScheme, Callable[[str], int]] = {
    HashingScheme.Murmur3_32Hash: murmur3_32_hash,
    HashingScheme.BoostHash: boost_hash,
    HashingScheme.JavaStringHash: java_string_hash,
}
