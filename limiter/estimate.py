"""How large a listing will be, before it is known.

Three policies (``floodgateSizeEstimate``): ``last`` remembers the last actual size of each key,
as shipped; ``proposal`` always says 1 KiB, as the PIP's text; ``exact`` asks who knows.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

FIRST_ESTIMATE_BYTES = 10_240
"""First guess for a key never listed before (upstream: TopicListSizeResultCache)."""
PROPOSAL_ESTIMATE_BYTES = 1_024
"""First guess of the PIP's text, which keeps no statistics."""
MAX_REMEMBERED_SIZES = 10_000
"""Keys remembered; the one unused for longest is forgotten (upstream: the same)."""
BYTES_PER_NAME = 32
"""What a listed name costs beside its UTF-8 bytes (upstream: estimateTopicListSize)."""


class SizeEstimate(Enum):
    """The policies of ``floodgateSizeEstimate``."""

    LAST = "last"
    PROPOSAL = "proposal"
    EXACT = "exact"


def estimate_topic_list_bytes(names: Iterable[str]) -> int:
    """Return the heap estimate of a list of names: UTF-8 bytes + 32 each."""
    return sum(len(name.encode()) + BYTES_PER_NAME for name in names)


class TopicListSizeResultCache:
    """The last actual size of each key; the first request of a key measures for the others.

    Bound: MAX_REMEMBERED_SIZES keys.

    Source: upstream TopicListSizeResultCache (PIP-442, merged version: the last value wins).
    """

    def __init__(self, max_keys: int = MAX_REMEMBERED_SIZES) -> None:
        self._holders: OrderedDict[int, ResultHolder] = OrderedDict()
        self._max_keys = max_keys

    def __len__(self) -> int:
        return len(self._holders)

    def holder(self, key: Hashable) -> ResultHolder:
        """Return the one holder of ``key``."""
        # A key may hold a name of megabytes; two that collide only share an estimate.
        digest = hash(key)
        holder = self._holders.get(digest)
        if holder is None:
            holder = self._holders[digest] = ResultHolder()
            if len(self._holders) > self._max_keys:
                self._holders.popitem(last=False)
        self._holders.move_to_end(digest)
        return holder


class ResultHolder:
    """What is known of one key's size: nothing, being measured, or the last actual size."""

    def __init__(self) -> None:
        self._size_bytes: int | None = None
        self._measured: asyncio.Future[int] | None = None

    @property
    def last_size_bytes(self) -> int | None:
        """The last actual size; None before the first."""
        return self._size_bytes

    async def size(self) -> int:
        """Return an estimate in bytes; 10,240 for the very first, whose result others await."""
        if self._size_bytes is not None:
            return self._size_bytes
        if self._measured is None:
            self._measured = asyncio.get_running_loop().create_future()
            return FIRST_ESTIMATE_BYTES
        return await asyncio.shield(self._measured)

    def update_size(self, actual_bytes: int) -> None:
        """Remember an actual size; who waited for the first one goes on with it."""
        self._size_bytes = actual_bytes
        self._resolve(actual_bytes)

    def reset_if_initializing(self) -> None:
        """The first measurement failed: who waits goes on with the first guess."""
        if self._size_bytes is None:
            self._resolve(FIRST_ESTIMATE_BYTES)

    def _resolve(self, size_bytes: int) -> None:
        measured, self._measured = self._measured, None
        if measured is not None and not measured.done():
            measured.set_result(size_bytes)
