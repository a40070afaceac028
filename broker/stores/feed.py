"""The ordered feed of a store's changes, with a bound for each reader."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Sequence

    from proto.names import NamespaceName

MAX_QUEUED_CHANGES = 10_000
"""Changes that wait for a slow reader; of more the oldest is dropped, and it sees a gap."""
MAX_TOLD_NAMES = 1_000
"""Most names of one change in the feed; those of a larger one are read from the snapshot."""


@dataclass(frozen=True, slots=True)
class Change:
    """One committed change, as readers of the feed see it.

    The changes of a namespace come in rising versions, each at most once. A reader at
    version v applies a complete change of version v + 1. Any other above v means: ask the store for
    the snapshot again and compare; None then means that the namespace is gone. The snapshot is at
    least as new as the change; changes up to its version can be ignored.

    Attributes:
        namespace: The namespace.
        version: The namespace's version with this change.
        added: UTF-8 names that did not exist before, system topics included.
        removed: UTF-8 names that existed before.
        complete: Whether the names are all that changed since the version before. False, without
            names: a change of more than MAX_TOLD_NAMES names, changes that were missed, or a
            namespace that another broker deleted. A database that came back without its last
            changes is told so, too, by a version that may be one that was told before.
    """

    namespace: NamespaceName
    version: int
    added: Sequence[bytes] = ()
    removed: Sequence[bytes] = ()
    complete: bool = True


class ChangeFeed:
    """One reader's changes, in order.

    Versions of a namespace count up: a gap between two changes means that some were dropped, and
    that the reader has to list again.

    Attributes:
        dropped: Number of dropped changes; their namespaces show no gap until they change again.
    """

    def __init__(self, feeds: ChangeFeeds, max_queued: int = MAX_QUEUED_CHANGES) -> None:
        self._feeds = feeds
        self._queued: deque[Change] = deque(maxlen=max_queued)
        self._arrived = asyncio.Event()
        self._closed = False
        self.dropped = 0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Change:
        while not self._queued:
            if self._closed:
                raise StopAsyncIteration
            self._arrived.clear()
            await self._arrived.wait()
        return self._queued.popleft()

    def push(self, change: Change) -> None:
        """Queue a change; called by the store."""
        self.dropped += len(self._queued) == self._queued.maxlen
        self._queued.append(change)
        self._arrived.set()

    def close(self) -> None:
        """Stop reading: queued changes still come, none after them."""
        self._closed = True
        self._arrived.set()
        self._feeds.discard(self)


class ChangeFeeds:
    """All readers of one store."""

    def __init__(self) -> None:
        self._feeds: dict[ChangeFeed, None] = {}

    def __len__(self) -> int:
        return len(self._feeds)

    def open(self) -> ChangeFeed:
        """Add a reader."""
        feed = ChangeFeed(self)
        self._feeds[feed] = None
        return feed

    def discard(self, feed: ChangeFeed) -> None:
        """Drop a reader. Idempotent."""
        self._feeds.pop(feed, None)

    def publish(self, change: Change) -> None:
        """Queue a change for every reader."""
        for feed in self._feeds:
            feed.push(change)

    def close(self) -> None:
        """End every reader."""
        for feed in list(self._feeds):
            feed.close()
