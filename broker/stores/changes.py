"""Changes of a namespace's topics, errors that reject them, and feeds of committed changes.

The feed is in order, and bounded for each reader.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeAlias

    from broker.stores.property_rows import PropertyRows
    from proto.names import NamespaceName

    NamespaceChanges: TypeAlias = tuple[NamespaceName, "TopicChanges"]
    """A change with its namespace."""


class StoreError(Exception):
    """A store failed; the text is a sentence for the operator."""


class TopicExistsError(Exception):
    """A change is rejected, as a name exists that it requires to be absent."""


class TopicMissingError(Exception):
    """A change is rejected, as a name does not exist that it requires to exist."""


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic's partition count and properties when its caller read them.

    Attributes:
        name: Full name.
        partitions: Number of partitions; 0 for a topic that is not partitioned.
        properties: All properties.
    """

    name: str
    partitions: int
    properties: Mapping[str, str]


class TopicChangedError(Exception):
    """A change is rejected, as its topic was modified after the caller read the topic's state.

    Attributes:
        found: The current state.
    """

    def __init__(self, found: TopicState) -> None:
        super().__init__(f"{found.name} was changed")
        self.found = found


class NamespaceMissingError(Exception):
    """A change is rejected, as its namespace does not exist and the change may not create it."""


class NamespaceNotEmptyError(Exception):
    """A deletion is rejected, as the namespace has user topics, or the tenant has namespaces."""


@dataclass(frozen=True, slots=True)
class TopicChanges:
    """Topics to add to a namespace and to remove from it, all or none of them.

    Attributes:
        added: Full names as UTF-8; each partition of a partitioned topic is listed.
        removed: Full names as UTF-8; removal wins over addition of the same name.
        partitioned: Partition counts by full base name; 0 removes the entry.
        properties: New properties of some topics, replacing all earlier properties; None without
            any. The name of a partitioned topic is allowed; its partitions have separate
            properties. Names removed, here or by ``partitioned``, lose their properties.
        absent: Full names of topics or partitioned topics required to be missing before the change:
            otherwise TopicExistsError.
        present: Full names required to exist: otherwise TopicMissingError.
        unchanged: A topic state required to be current: otherwise TopicChangedError.
        creates_namespace: Whether a missing namespace is created; otherwise NamespaceMissingError.
        adds_only: Whether the change only adds, as an import does: partition counts never shrink,
            and existing topics and partitioned topics keep their properties. A new partition
            without properties inherits from its partitioned topic, if that exists and is in
            ``partitioned``.
    """

    added: Sequence[bytes] = ()
    removed: Sequence[bytes] = ()
    partitioned: Mapping[str, int] = field(default_factory=dict)
    properties: PropertyRows | None = None
    absent: Sequence[str] = ()
    present: Sequence[str] = ()
    unchanged: TopicState | None = None
    creates_namespace: bool = True
    adds_only: bool = False


MAX_QUEUED_CHANGES = 10_000
"""Queue length of a slow reader of the feed; beyond, the oldest change is dropped, leaving a
gap."""
MAX_TOLD_NAMES = 1_000
"""Most names of a change in the feed; names of larger changes are read from the snapshot."""


@dataclass(frozen=True, slots=True)
class Change:
    """A committed change of a namespace, as published to the readers of a feed.

    Changes of a namespace have rising versions, each published at most once. A reader at version v
    applies a complete change of version v + 1. After any other change above v the reader requests
    the snapshot again and compares; None then means a deleted namespace. The snapshot is at least
    as new as the change; changes up to the snapshot's version can be ignored.

    Attributes:
        namespace: The namespace.
        version: The namespace's version with the change.
        added: Newly created UTF-8 names, system topics included.
        removed: Deleted UTF-8 names.
        complete: Whether the names are the full difference to the previous version. False, without
            names, after a change of more than MAX_TOLD_NAMES names, after missed changes, and after
            a deletion of the namespace by another broker. Also False after a database was restored
            without its last changes; the version may then repeat a published version.
    """

    namespace: NamespaceName
    version: int
    added: Sequence[bytes] = ()
    removed: Sequence[bytes] = ()
    complete: bool = True


class ChangeFeed:
    """A bounded queue of committed changes for one reader, in commit order.

    Versions of a namespace count up: a gap between two changes means dropped changes, and the
    reader must list the namespace again.

    Attributes:
        dropped: Number of dropped changes; a gap shows only with the namespace's next change.
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
        """Queue a committed change, which drops the oldest one of a full queue.

        The store calls this.
        """
        self.dropped += len(self._queued) == self._queued.maxlen
        self._queued.append(change)
        self._arrived.set()

    def close(self) -> None:
        """Close the feed; the reader still receives the changes already queued."""
        self._closed = True
        self._arrived.set()
        self._feeds.discard(self)


class ChangeFeeds:
    """The change feeds of all readers of one store."""

    def __init__(self) -> None:
        self._feeds: dict[ChangeFeed, None] = {}

    def __len__(self) -> int:
        return len(self._feeds)

    def open(self) -> ChangeFeed:
        """Open a feed that a new reader gets all later changes from."""
        feed = ChangeFeed(self)
        self._feeds[feed] = None
        return feed

    def discard(self, feed: ChangeFeed) -> None:
        """Stop publishing to a reader's feed; may be called repeatedly."""
        self._feeds.pop(feed, None)

    def publish(self, change: Change) -> None:
        """Queue a committed change in every reader's feed."""
        for feed in self._feeds:
            feed.push(change)

    def close(self) -> None:
        """Close every reader's feed; readers still receive the changes already queued."""
        for feed in list(self._feeds):
            feed.close()
