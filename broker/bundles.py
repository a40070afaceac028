"""Bundles: the ranges of topic hashes into which a namespace is divided.

Source: upstream NamespaceBundleFactory and NamespaceBundles; the hash of a topic is the CRC32 of
its full name.
"""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

MAX_BUNDLES = 65_536
"""Bundles that a namespace may have: their boundaries are listed in every answer on it.

Differs: upstream allows 2**32.
"""
_HASHES = 2**32
_LAST_HASH = _HASHES - 1


@dataclass(frozen=True, slots=True)
class BundleRange:
    """The hashes from ``low`` up to, and without, ``high``."""

    low: int
    high: int

    def __str__(self) -> str:
        return f"{_hex(self.low)}_{_hex(min(self.high, _LAST_HASH))}"

    def holds(self, name: bytes) -> bool:
        """Tell whether the topic of a full name lies in this bundle."""
        return self.low <= crc32(name) < self.high

    def kept(self, names: list[bytes]) -> list[bytes]:
        """Return the full names that lie in this bundle, in their order."""
        low, high = self.low, self.high
        return [name for name in names if low <= crc32(name) < high]


ALL_HASHES = BundleRange(0, _HASHES)
"""The bundle of a namespace that is not divided."""


def boundaries(count: int) -> list[str]:
    """Return the boundaries of ``count`` bundles of equal size, as Pulsar writes them."""
    return [_hex(_start(index, count)) for index in range(count)] + [_hex(_LAST_HASH)]


def bundle_named(text: str, count: int) -> BundleRange | None:
    """Return the bundle that is written ``0x..._0x...``; None if it is none of ``count``."""
    low, _, _ = text.partition("_")
    try:
        index = int(low, 16) * count // _HASHES
    except ValueError:
        return None
    # The sizes are rounded down: the bundle that starts here may be the next one.
    found = (_bundle(one, count) for one in (index, index + 1) if 0 <= one < count)
    return next((bundle for bundle in found if str(bundle) == text), None)


def bundle_of(name: bytes, count: int) -> BundleRange:
    """Return the bundle that the topic of a full name lies in."""
    return _bundle(min(crc32(name) // (_HASHES // count), count - 1), count)


def _bundle(index: int, count: int) -> BundleRange:
    high = _HASHES if index == count - 1 else _start(index + 1, count)
    return BundleRange(_start(index, count), high)


def _start(index: int, count: int) -> int:
    return index * (_HASHES // count)


def _hex(value: int) -> str:
    return f"0x{value:08x}"
