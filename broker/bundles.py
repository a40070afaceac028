"""Bundles: ranges of topic hashes, which divide a namespace's topics among brokers.

Source: upstream NamespaceBundleFactory and NamespaceBundles; the hash of a topic is the CRC32 of
its full name.
"""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

MAX_BUNDLES = 65_536
"""Most bundles of a namespace: their boundaries are listed in every answer about the namespace.

Differs: upstream allows 2**32.
"""
_HASHES = 2**32
_LAST_HASH = _HASHES - 1


@dataclass(frozen=True, slots=True)
class BundleRange:
    """A bundle's range: hashes of its topics are at least ``low`` and less than ``high``."""

    low: int
    high: int

    def __str__(self) -> str:
        return f"{_hex(self.low)}_{_hex(min(self.high, _LAST_HASH))}"

    def holds(self, name: bytes) -> bool:
        """Return True if the topic with the given full name belongs to the bundle."""
        return self.low <= crc32(name) < self.high

    def kept(self, names: list[bytes]) -> list[bytes]:
        """Return those of the given full topic names that belong to the bundle, in order."""
        low, high = self.low, self.high
        return [name for name in names if low <= crc32(name) < high]


ALL_HASHES = BundleRange(0, _HASHES)
"""The bundle of an undivided namespace."""


def boundaries(count: int) -> list[str]:
    """Return the hashes that bound ``count`` equal bundles, in hexadecimal like ``0x40000000``."""
    return [_hex(_start(index, count)) for index in range(count)] + [_hex(_LAST_HASH)]


def bundle_named(text: str, count: int) -> BundleRange | None:
    """Return the bundle with a name like ``0x00000000_0x40000000``; None if there is none.

    ``count`` is the number of the namespace's bundles.
    """
    low, _, _ = text.partition("_")
    try:
        index = int(low, 16) * count // _HASHES
    except ValueError:
        return None
    # Sizes are rounded down: the bundle starting here may be the next.
    found = (_bundle(one, count) for one in (index, index + 1) if 0 <= one < count)
    return next((bundle for bundle in found if str(bundle) == text), None)


def bundle_of(name: bytes, count: int) -> BundleRange:
    """Return which of a namespace's ``count`` bundles contains the topic with a full name."""
    return _bundle(min(crc32(name) // (_HASHES // count), count - 1), count)


def _bundle(index: int, count: int) -> BundleRange:
    high = _HASHES if index == count - 1 else _start(index + 1, count)
    return BundleRange(_start(index, count), high)


def _start(index: int, count: int) -> int:
    return index * (_HASHES // count)


def _hex(value: int) -> str:
    return f"0x{value:08x}"
