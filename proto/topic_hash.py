"""Pulsar's hash of a topic list, and the sort order of names that the hash requires.

The hash is the CRC32C of the names, sorted as Java sorts strings and joined by commas, written as
its four bytes in little-endian order (upstream: TopicList.calculateHash).
"""

from __future__ import annotations

from array import array
from functools import cache
from typing import TYPE_CHECKING

import google_crc32c

if TYPE_CHECKING:
    from collections.abc import Iterable

# Java compares UTF-16 code units: characters above U+FFFF are surrogates (D800..DFFF) in Java and
# sort before U+E000..U+FFFF, while UTF-8 sorts them last. The lead bytes EE and EF (U+E000..U+FFFF)
# occur nowhere else in valid UTF-8, so raising them above F0..F4 gives Java's order.
_LIFT = bytes.maketrans(b"\xee\xef", b"\xfe\xff")
_POLYNOMIAL = 0x82F63B78
_PERIOD = (1 << 31) - 1
"""Exponent at which x, and so x^8, becomes 1 modulo CRC32C's polynomial."""
EMPTY_HASH = "00000000"


def java_order(name: bytes) -> bytes:
    """Return the sort key that sorts UTF-8 names as Java sorts the same strings."""
    return name.translate(_LIFT)


def in_java_order(names: Iterable[bytes]) -> list[bytes]:
    """Return UTF-8 names without duplicates, sorted as Java sorts strings."""
    distinct = set(names)
    if all(map(bytes.isascii, distinct)):
        return sorted(distinct)
    return sorted(distinct, key=java_order)


def format_hash(crc: int) -> str:
    """Return a CRC32C in the format of Pulsar's clients: eight lower-case hex digits."""
    return crc.to_bytes(4, "little").hex()


def joined_crc(sorted_names: Iterable[bytes]) -> tuple[int, int]:
    """Return the CRC32C and the byte length of names joined by commas.

    The names must be sorted as Java sorts strings.
    """
    joined = b",".join(sorted_names)
    return google_crc32c.value(joined), len(joined)


def topics_hash(names: Iterable[str]) -> str:
    """Return Pulsar's hash of a list of full topic names, passed in any order."""
    encoded = sorted((name.encode() for name in names), key=java_order)
    return format_hash(joined_crc(encoded)[0])


def combine_joined(left: tuple[int, int, int], right: tuple[int, int, int]) -> tuple[int, int]:
    """Return the CRC32C and byte length of two comma-joined lists, joined by a comma.

    Args:
        left: Number of names, CRC32C and byte length of the first list.
        right: The same of the second list.

    A list without names is skipped; an empty *name* still adds its comma.
    """
    if left[0] == 0:
        return right[1], right[2]
    if right[0] == 0:
        return left[1], left[2]
    with_comma = google_crc32c.extend(left[1], b",")
    return combine_crc(with_comma, right[1], right[2]), left[2] + 1 + right[2]


def combine_crc(first: int, second: int, second_bytes: int) -> int:
    """Return the CRC32C of two concatenated byte strings, computed from their CRC32Cs.

    Args:
        first: CRC32C of the first string.
        second: CRC32C of the second string.
        second_bytes: Length of the second string.
    """
    return shift_crc(first, second_bytes) ^ second


def shift_crc(crc: int, size_bytes: int) -> int:
    """Return a string's contribution to the CRC32C of the string plus ``size_bytes`` more bytes.

    A CRC is a polynomial, and appending a byte multiplies it by x^8: a table look-up for each byte
    of the CRC and each byte of the length, 0.4 us for a name's length and 1 us for a megabyte. A
    negative length removes as many bytes from the end.
    """
    if -256 < size_bytes < 256:  # The common case: a name's length.
        table = _shift_table(0, size_bytes)
        return (
            table[crc & 255]
            ^ table[crc >> 8 & 255 | 256]
            ^ table[crc >> 16 & 255 | 512]
            ^ table[crc >> 24 | 768]
        )
    sign, size_bytes, place = (1 if size_bytes > 0 else -1), abs(size_bytes), 0
    while size_bytes:
        if value := size_bytes & 255:
            table = _shift_table(place, sign * value)
            crc = (
                table[crc & 255]
                ^ table[crc >> 8 & 255 | 256]
                ^ table[crc >> 16 & 255 | 512]
                ^ table[crc >> 24 | 768]
            )
        size_bytes >>= 8
        place += 1
    return crc


@cache
def _shift_table(place: int, value: int) -> array[int]:
    """Return a lookup table for shifting a CRC, with an entry for each value of each byte.

    Shifts by ``value * 256 ** place`` bytes, composed of shifts by powers of two. Bound: 512 tables
    of 4 KB for each byte of the longest text's length.
    """
    lowest = value & -value
    if abs(value) == lowest:
        # Powers of x are cyclic, so a shift can be undone.
        operator = _shift_operator((value << (8 * place)) % _PERIOD)
        shifted = [_multiply(operator, 1 << bit) for bit in range(32)]
    else:
        first, then = _shift_table(place, lowest), _shift_table(place, value - lowest)
        bits = (first[256 * part + (1 << bit)] for part in range(4) for bit in range(8))
        shifted = [
            then[crc & 255]
            ^ then[crc >> 8 & 255 | 256]
            ^ then[crc >> 16 & 255 | 512]
            ^ then[crc >> 24 | 768]
            for crc in bits
        ]
    # A shift is linear: a byte's result is the sum of its bits' results.
    table = array("I")
    for part in range(4):
        row = [0]
        for one in shifted[8 * part : 8 * part + 8]:
            row += [entry ^ one for entry in row]
        table.extend(row)
    return table


def _shift_operator(size_bytes: int) -> int:
    """Return the polynomial x^(8 * size_bytes) modulo CRC32C's, computed by squaring."""
    operator, square = 1 << 31, 1 << (31 - 8)
    while size_bytes:
        if size_bytes & 1:
            operator = _multiply(square, operator)
        square = _multiply(square, square)
        size_bytes >>= 1
    return operator


def _multiply(a: int, b: int) -> int:
    """Multiply two polynomials modulo CRC32C's polynomial.

    Bits are reflected: bit 31 is x^0.
    """
    product = 0
    while a:
        if a & 0x80000000:
            product ^= b
            a ^= 0x80000000
        a <<= 1
        b = (b >> 1) ^ _POLYNOMIAL if b & 1 else b >> 1
    return product
