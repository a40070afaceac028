"""Pulsar's hash of a topic list, and the order it is computed in.

The hash is the CRC32C of the names, sorted as Java sorts strings and joined by commas,
written as its four bytes in little-endian order (upstream: TopicList.calculateHash).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import google_crc32c

if TYPE_CHECKING:
    from collections.abc import Iterable

# Java compares UTF-16 code units: characters above U+FFFF are surrogates (D800..DFFF) there and
# sort before U+E000..U+FFFF, while UTF-8 sorts them last. The lead bytes EE and EF (U+E000..U+FFFF)
# occur in no other place of valid UTF-8, so lifting them above F0..F4 gives Java's order.
_LIFT = bytes.maketrans(b"\xee\xef", b"\xfe\xff")
_POLYNOMIAL = 0x82F63B78
EMPTY_HASH = "00000000"


def java_order(name: bytes) -> bytes:
    """Return the key that sorts UTF-8 names as Java sorts the same strings."""
    return name.translate(_LIFT)


def in_java_order(names: Iterable[bytes]) -> list[bytes]:
    """Return distinct UTF-8 names sorted as Java sorts strings."""
    distinct = set(names)
    if all(map(bytes.isascii, distinct)):
        return sorted(distinct)
    return sorted(distinct, key=java_order)


def format_hash(crc: int) -> str:
    """Write a CRC32C as Pulsar's clients compare it: eight lower-case hex digits."""
    return crc.to_bytes(4, "little").hex()


def joined_crc(sorted_names: Iterable[bytes]) -> tuple[int, int]:
    """Return CRC32C and length in bytes of names in Java's order, joined by commas."""
    joined = b",".join(sorted_names)
    return google_crc32c.value(joined), len(joined)


def topics_hash(names: Iterable[str]) -> str:
    """Return the topics hash of a list of full topic names in any order."""
    encoded = sorted((name.encode() for name in names), key=java_order)
    return format_hash(joined_crc(encoded)[0])


def combine_joined(left: tuple[int, int, int], right: tuple[int, int, int]) -> tuple[int, int]:
    """Return CRC and length of two joined lists put side by side with a comma between.

    Args:
        left: Number of names, CRC32C and byte length of the first list.
        right: The same of the second list.

    A list without names takes no part; one empty *name* still brings its comma.
    """
    if left[0] == 0:
        return right[1], right[2]
    if right[0] == 0:
        return left[1], left[2]
    with_comma = google_crc32c.extend(left[1], b",")
    return combine_crc(with_comma, right[1], right[2]), left[2] + 1 + right[2]


def combine_crc(first: int, second: int, second_bytes: int) -> int:
    """Return the CRC32C of two byte strings' concatenation from the CRCs of both.

    Args:
        first: CRC32C of the first string.
        second: CRC32C of the second string.
        second_bytes: Length of the second string.
    """
    return _multiply(_shift_operator(second_bytes), first) ^ second


@lru_cache(maxsize=4096)
def _shift_operator(size_bytes: int) -> int:
    """Return x^(8 * size) modulo the polynomial: what appending ``size`` bytes does to a CRC."""
    result, square = 1 << 31, _byte_operator()
    while size_bytes:
        if size_bytes & 1:
            result = _multiply(square, result)
        square = _multiply(square, square)
        size_bytes >>= 1
    return result


@lru_cache(maxsize=1)
def _byte_operator() -> int:
    """Return x^8 modulo the polynomial, in the bit-reflected order of CRC32C."""
    return 1 << (31 - 8)


def _multiply(a: int, b: int) -> int:
    """Multiply two polynomials modulo CRC32C's, bits reflected (bit 31 is x^0)."""
    product = 0
    while a:
        if a & 0x80000000:
            product ^= b
            a ^= 0x80000000
        a <<= 1
        b = (b >> 1) ^ _POLYNOMIAL if b & 1 else b >> 1
    return product
