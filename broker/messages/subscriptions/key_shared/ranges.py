"""Ranges of key hashes that belong to consumers (Key_Shared without a hash ring).

Ranges are fixed (STICKY), or halved for new consumers (AUTO_SPLIT).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from itertools import pairwise
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import mmh3

import proto.PulsarApi_pb2 as pb
from server.connection.request_errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Sequence

C = TypeVar("C")


def murmur(data: bytes) -> int:
    """Return the 32-bit Murmur3 hash (x86, seed 0) of bytes without its sign: 0..2^31-1.

    Source: upstream Murmur3_32Hash.makeHash.
    """
    return mmh3.hash(data, 0, signed=False) & 0x7FFFFFFF


class MovedHashes(NamedTuple, Generic[C]):
    """A range of hashes that moves to another consumer; both ends are included.

    Attributes:
        first: The lowest hash.
        last: The highest hash.
        source: The previous consumer; None if the hashes were free before.
        target: The new consumer; None if the hashes are free now.
    """

    first: int
    last: int
    source: C | None
    target: C | None


HASHES = 65_536
MOST_RANGES = 4_096
"""The largest number of hash ranges of a consumer; more would block the event loop."""


class FixedRanges(Generic[C]):
    """The hash ranges that consumers requested and own; hashes outside all ranges are free.

    Source: upstream HashRangeExclusiveStickyKeyConsumerSelector.
    """

    def __init__(self) -> None:
        # In order, without overlaps.
        self._firsts: list[int] = []
        self._ranges: list[tuple[int, int, C]] = []
        self._of: dict[C, list[tuple[int, int]]] = {}
        # Ranges of removed consumers stay above until the next change: a connection may leave with
        # hundreds, and there may be 65,536 ranges.
        self._some_left = False

    @staticmethod
    def hash_of(key: bytes) -> int:
        """Return the hash of a key: 0 to 65,535."""
        return murmur(key) % HASHES

    def add(self, consumer: C, ranges: Sequence[tuple[int, int]]) -> list[MovedHashes[C]]:
        """Assign the requested hash ranges, both ends included, to a consumer; return the ranges.

        Raises:
            RequestError: The consumer requests no ranges, too many, or ranges that another consumer
                owns; the state is unchanged.
        """
        self._forget_those_left()
        if not ranges:
            raise _refused("Ranges for KeyShared policy must not be empty.")
        if len(ranges) > MOST_RANGES:
            raise _refused(f"{len(ranges)} ranges for KeyShared policy are more than {MOST_RANGES}")
        for first, last in ranges:
            if first > last:
                raise _refused(f"Fixed hash range start > end for range: [{first},{last}]")
            holder = self._holder_within(first, last)
            if holder is not None:
                raise _refused(f"Range conflict with consumer {holder}")
        taken = _joined(ranges)
        self._of[consumer] = taken
        self._hold([*self._ranges, *((first, last, consumer) for first, last in taken)])
        return [MovedHashes(first, last, None, consumer) for first, last in taken]

    def remove(self, consumer: C) -> list[MovedHashes[C]]:
        """Remove a consumer; return its hash ranges, which are free now."""
        left = self._of.pop(consumer, [])
        self._some_left = True
        return [MovedHashes(first, last, consumer, None) for first, last in left]

    def _forget_those_left(self) -> None:
        if self._some_left:
            self._hold([taken for taken in self._ranges if taken[2] in self._of])
            self._some_left = False

    def select(self, sticky_hash: int) -> C | None:
        """Return the consumer that owns a hash; None if the hash is free."""
        index = bisect_right(self._firsts, sticky_hash) - 1
        if index < 0 or self._ranges[index][1] < sticky_hash:
            return None
        holder = self._ranges[index][2]
        return holder if holder in self._of else None

    def ranges(self, consumer: C) -> list[tuple[int, int]]:
        """Return the hashes that a consumer owns, as inclusive ranges."""
        return list(self._of.get(consumer, ()))

    def conflicting(self, meta: pb.KeySharedMeta) -> C | None:
        """Return a consumer that owns hashes which a new consumer requests, or None."""
        if meta.keySharedMode != pb.STICKY:
            return None
        self._forget_those_left()
        asked = meta.hashRanges[:MOST_RANGES]
        holders = (self._holder_within(one.start, one.end) for one in asked)
        return next((one for one in holders if one is not None), None)

    def _holder_within(self, first: int, last: int) -> C | None:
        index = bisect_right(self._firsts, last) - 1
        if index < 0 or self._ranges[index][1] < first:
            return None
        return self._ranges[index][2]

    def _hold(self, ranges: list[tuple[int, int, C]]) -> None:
        self._ranges = sorted(ranges, key=lambda taken: taken[0])
        self._firsts = [taken[0] for taken in self._ranges]


def _joined(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the ranges in ascending order, with overlapping ranges merged."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return joined


def _refused(text: str) -> RequestError:
    return RequestError(pb.ConsumerAssignError, text)


class HalvedRanges(Generic[C]):
    """One range of hashes per consumer; a new consumer takes half of the largest range.

    A removed consumer's range joins the next range above.

    Names do not matter: consumers joining in the same order get the same ranges.

    Source: upstream HashRangeAutoSplitStickyKeyConsumerSelector.
    """

    def __init__(self) -> None:
        # The last hash of each range in order. No key has the uppermost hash (recorded).
        self._lasts: list[int] = []
        self._of: dict[int, C] = {}
        self._last_of: dict[C, int] = {}

    @staticmethod
    def hash_of(key: bytes) -> int:
        """Return the hash of a key: 0 to 65,535."""
        return murmur(key) % HASHES

    def add(self, consumer: C) -> list[MovedHashes[C]]:
        """Assign half of the largest range to a consumer; return the range and its old consumer.

        The consumer gets the lower half.

        Raises:
            RequestError: Every range is a single hash.
        """
        if not self._lasts:
            self._hold(HASHES, consumer)
            return [MovedHashes(0, HASHES, None, consumer)]
        size, below, last = max(
            ((last - below, below, last) for below, last in pairwise([0, *self._lasts])),
            key=lambda found: (found[0], -found[2]),
        )
        if size < 2:
            raise RequestError(
                pb.ConsumerAssignError,
                f"No more range can assigned to new consumer, assigned consumers {len(self._of)}",
            )
        source, middle = self._of[last], below + size // 2
        first = self._first(below)
        self._hold(middle, consumer)
        return [MovedHashes(first, middle, source, consumer)]

    def _hold(self, last: int, consumer: C) -> None:
        insort(self._lasts, last)
        self._of[last] = consumer
        self._last_of[consumer] = last

    @staticmethod
    def _first(below: int) -> int:
        """Return the first hash of the range above a given last hash; 0 for the lowest range."""
        return below + 1 if below else 0

    def remove(self, consumer: C) -> None:
        """Add a removed consumer's range to the next range above, or the highest to that below."""
        last = self._last_of.pop(consumer, None)
        if last is None:
            return
        del self._lasts[bisect_left(self._lasts, last)], self._of[last]
        if last == HASHES and self._lasts:
            heir = self._of.pop(self._lasts.pop())
            self._hold(HASHES, heir)

    def select(self, sticky_hash: int) -> C | None:
        """Return the consumer that owns a hash; None without consumers."""
        if not self._lasts:
            return None
        return self._of[self._lasts[bisect_left(self._lasts, sticky_hash)]]

    def ranges(self, consumer: C) -> list[tuple[int, int]]:
        """Return the hashes that a consumer owns, as a list of one inclusive range."""
        last = self._last_of.get(consumer)
        if last is None:
            return []
        index = bisect_left(self._lasts, last)
        return [(self._first(self._lasts[index - 1] if index else 0), last)]
