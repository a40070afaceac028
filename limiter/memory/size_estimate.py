"""Estimates of the size of a topic list before it is made.

Three policies (``floodgateSizeEstimate``): ``last`` remembers the last actual size of each key,
as upstream; ``proposal`` has the figures of the PIP's text; ``exact`` queries the store.

========== ============================== =====================================================
policy     reserved first                 charged when the list is made
========== ============================== =====================================================
last       10,240, then the last charge   UTF-8 bytes of the names + 32 each
proposal   1,024 always, no memory        UTF-8 bytes of the names
exact      broker: the store's size;      broker: UTF-8 bytes of the names + 32 each; proxy: the
           proxy: the last charge         announced response length, before reading
========== ============================== =====================================================

The PIP's text counts characters where ``proposal`` counts UTF-8 bytes: the same for ASCII. Its
earlier draft had the proxy charge the received command's size and hold heap until the answer was
written; the accepted text and ``proposal`` do neither. Direct memory is charged with the size of
the response's command under all three, as in the text and the released code.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

FIRST_ESTIMATE_BYTES = 10_240
"""Estimate for a key never listed before (upstream: TopicListSizeResultCache)."""
PROPOSAL_ESTIMATE_BYTES = 1_024
"""Fixed estimate of PIP-442's text, which keeps no statistics of sizes."""
MAX_REMEMBERED_SIZES = 10_000
"""Remembered keys; the least recently used key is evicted (upstream: the same)."""
BYTES_PER_NAME = 32
"""Bytes of a listed name beside its UTF-8 bytes (upstream: estimateTopicListSize)."""


class SizeEstimate(Enum):
    """Policies for estimating the size of a topic list (``floodgateSizeEstimate``)."""

    LAST = "last"
    PROPOSAL = "proposal"
    EXACT = "exact"


def estimate_topic_list_bytes(names: Iterable[str]) -> int:
    """Estimate the heap bytes of a list of names: the UTF-8 bytes, and 32 for each name."""
    return sum(len(name.encode()) + BYTES_PER_NAME for name in names)


def charged_bytes(policy: SizeEstimate, estimated_bytes: int, names: int) -> int:
    """Return the heap bytes charged for a topic list once it is made.

    Source: PIP-442, "Integration Points"; upstream TopicListMemoryLimiter.estimateTopicListSize.
    """
    if policy is SizeEstimate.PROPOSAL:
        return estimated_bytes - BYTES_PER_NAME * names
    return estimated_bytes


class TopicListSizeResultCache:
    """Cache of the last actual size of each key's topic list.

    The first request for a key measures the size for concurrent requests.

    Bound: MAX_REMEMBERED_SIZES keys.

    Source: upstream TopicListSizeResultCache (PIP-442, merged version: the last value wins).
    """

    def __init__(self, max_keys: int = MAX_REMEMBERED_SIZES) -> None:
        self._holders: OrderedDict[int, ResultHolder] = OrderedDict()
        self._max_keys = max_keys

    def __len__(self) -> int:
        return len(self._holders)

    def holder(self, key: Hashable) -> ResultHolder:
        """Return the object that stores the size of the topic list of ``key``."""
        # A key may hold a name of megabytes; two colliding keys only share an estimate.
        digest = hash(key)
        holder = self._holders.get(digest)
        if holder is None:
            holder = self._holders[digest] = ResultHolder()
            if len(self._holders) > self._max_keys:
                self._holders.popitem(last=False)
        self._holders.move_to_end(digest)
        return holder


class ResultHolder:
    """Size of a key's topic list: unknown, being measured, or the last actual size.

    Attributes:
        last_size_bytes: The last actual size; None before the first.
        measurement: The first measurement while it is under way; each measurement is a new object.
    """

    def __init__(self) -> None:
        self.last_size_bytes: int | None = None
        self.measurement: asyncio.Future[int] | None = None

    async def size(self) -> int:
        """Return the estimated bytes: 10,240 for the first request, which measures the size."""
        if self.last_size_bytes is not None:
            return self.last_size_bytes
        if self.measurement is None:
            self.measurement = asyncio.get_running_loop().create_future()
            return FIRST_ESTIMATE_BYTES
        return await asyncio.shield(self.measurement)

    def update_size(self, actual_bytes: int) -> None:
        """Remember a list's actual size, and resume requests waiting for its first measurement."""
        self.last_size_bytes = actual_bytes
        self._resolve(actual_bytes)

    def reset_if_initializing(self) -> None:
        """Resume requests waiting for a failed first measurement, with the default estimate."""
        if self.last_size_bytes is None:
            self._resolve(FIRST_ESTIMATE_BYTES)

    def forget(self) -> None:
        """Forget the size of the topic list, so that the next request measures it again.

        A size above a limit may be out of date.
        """
        self.last_size_bytes = None

    def _resolve(self, size_bytes: int) -> None:
        measured, self.measurement = self.measurement, None
        if measured is not None and not measured.done():
            measured.set_result(size_bytes)


class SizeGuess:
    """Size estimate used by one request, which then reports the actual size or a failure.

    Args:
        holder: The size of the key.
        anyone_resets: True if any failure resets the measurement under way, as upstream does once a
            request has its estimate; otherwise only the measuring request resets it, and other
            failures do not affect waiting requests.

    Source: upstream's callers of TopicListSizeResultCache.ResultHolder.
    Differs: a request that leaves while waiting for another request's measurement has not failed.
    (Upstream cannot abandon the wait at all.)
    """

    __slots__ = ("_anyone_resets", "_has_estimate", "_holder", "_measures")

    def __init__(self, holder: ResultHolder, *, anyone_resets: bool) -> None:
        self._holder = holder
        self._anyone_resets = anyone_resets
        self._has_estimate = False
        self._measures: object | None = None

    async def size(self) -> int:
        """Return the bytes to reserve; may wait for another request's first size measurement."""
        under_way = self._holder.measurement
        size_bytes = await self._holder.size()
        if under_way is None:
            self._measures = self._holder.measurement
        self._has_estimate = True
        return size_bytes

    def actual(self, size_bytes: int) -> None:
        """Remember the actual size of the topic list, in bytes."""
        self._holder.update_size(size_bytes)

    def failed(self) -> None:
        """Resume requests that wait for a failed measurement; no-op once a size is known."""
        mine = self._measures is not None and self._holder.measurement is self._measures
        if mine or (self._anyone_resets and self._has_estimate):
            self._holder.reset_if_initializing()

    def forget(self) -> None:
        """Forget the size of the topic list, because it exceeds a limit."""
        self._holder.forget()
