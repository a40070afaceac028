"""AUTO_SPLIT without consistent hashing: each newcomer gets half of the largest range."""

from __future__ import annotations

from bisect import bisect_left, insort
from itertools import pairwise
from typing import Generic, TypeVar

import proto.PulsarApi_pb2 as pb
from broker.messages.subscriptions.key_shared.moved_hashes import MovedHashes
from broker.messages.subscriptions.key_shared.murmur import murmur
from server.connection.request_errors import RequestError

C = TypeVar("C")

HASHES = 65_536


class HalvedRanges(Generic[C]):
    """One range of hashes per consumer; a removed consumer's range joins the next range above.

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
        """Give a consumer half of the largest range; return the range and its previous consumer.

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
        """Return the first hash behind the end of another range, or 0 without another range."""
        return below + 1 if below else 0

    def remove(self, consumer: C) -> None:
        """Join a consumer's range to the next range above; the uppermost to the range below."""
        last = self._last_of.pop(consumer, None)
        if last is None:
            return
        del self._lasts[bisect_left(self._lasts, last)], self._of[last]
        if last == HASHES and self._lasts:
            heir = self._of.pop(self._lasts.pop())
            self._hold(HASHES, heir)

    def select(self, sticky_hash: int) -> C | None:
        """Return the consumer of a hash; None without consumers."""
        if not self._lasts:
            return None
        return self._of[self._lasts[bisect_left(self._lasts, sticky_hash)]]

    def ranges(self, consumer: C) -> list[tuple[int, int]]:
        """Return the hashes of a consumer as an inclusive range."""
        last = self._last_of.get(consumer)
        if last is None:
            return []
        index = bisect_left(self._lasts, last)
        return [(self._first(self._lasts[index - 1] if index else 0), last)]
