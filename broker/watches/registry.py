"""Who watches what: the watches of each connection, the namespaces they need, and their budget."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.errors import RequestError
from broker.watches.rules import REFUSED
from broker.watches.sets.namespace_watch import NamespaceWatch
from limiter.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.stores.feed import Change
    from broker.watches.sets.context import FollowingContext
    from broker.watches.sets.totals import WatchTotals
    from broker.watches.watcher import TopicListWatcher
    from proto.names import NamespaceName
    from server.connection.served_connection import ServedConnection

WATCHER_BYTES = 1_024
"""What a watcher costs beside its set."""


@dataclass(slots=True)
class CnxWatches:
    """The watches of one connection."""

    backoff: Backoff = field(default_factory=Backoff)
    by_id: dict[int, Watch] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Watch:
    """One watcher id of a connection: being made, or there.

    Attributes:
        pattern: The first request's, without its domain; later ones do not change it.
        pending: Requests that wait for its creation, with their tasks.
        asked_again: A second request came before the first was answered.
        ended: Nobody is to be told anything any more.
    """

    namespace: NamespaceWatch
    pattern: str
    watcher: TopicListWatcher
    created: asyncio.Future[None]
    pending: dict[int, asyncio.Task[None] | None] = field(default_factory=dict)
    asked_again: bool = False
    ended: bool = False


class WatchRegistry:
    """Every watch of one broker.

    Bound: ``max_bytes`` for names, sets and watchers together; one more is refused, and its
    client polls.

    Args:
        parts: What followed namespaces work with.
        max_bytes: floodgateTopicWatchMaxBytes; 0 is unlimited.
        totals: Counts what happens.
    """

    def __init__(self, parts: FollowingContext, max_bytes: int, totals: WatchTotals) -> None:
        self.max_bytes = max_bytes
        self._parts = parts
        self._totals = totals
        self._watches: dict[ServedConnection, CnxWatches] = {}
        self._namespaces: dict[NamespaceName, NamespaceWatch] = {}

    @property
    def held_bytes(self) -> int:
        """About what all watches cost in memory."""
        names = sum(one.sets.held_bytes for one in self._namespaces.values())
        return names + WATCHER_BYTES * self._totals.watchers

    @property
    def sets(self) -> int:
        """How many different sets are watched."""
        return sum(len(one.sets) for one in self._namespaces.values())

    @property
    def connections(self) -> Iterable[ServedConnection]:
        """Those that have asked for a watch."""
        return tuple(self._watches)

    def check_room(self, more_bytes: int = 0) -> None:
        """Refuse what would take more than the budget.

        Raises:
            RequestError: NotAllowedError, for which clients poll instead.
        """
        if self.max_bytes <= 0:
            return
        held = self.held_bytes + more_bytes
        if held > self.max_bytes:
            self._totals.refused += 1
            raise RequestError(
                pb.NotAllowedError,
                f"{REFUSED}watches would take {held} of {self.max_bytes} bytes: raise "
                "floodgateTopicWatchMaxBytes, or watch fewer different patterns",
            )

    def push(self, change: Change) -> None:
        """Hand a change of the store to the namespace it is about, if that is watched."""
        namespace = self._namespaces.get(change.namespace)
        if namespace is not None:
            namespace.push(change)

    def missed_some(self) -> None:
        """Changes were dropped, nobody knows of which namespaces: all are listed again."""
        for namespace in self._namespaces.values():
            namespace.fall_behind()

    def of(self, cnx: ServedConnection) -> CnxWatches:
        """Return the watches of a connection."""
        return self._watches.setdefault(cnx, CnxWatches())

    def namespace(self, name: NamespaceName) -> NamespaceWatch:
        """Return a namespace that is, or is about to be, watched."""
        known = self._namespaces.get(name)
        if known is None:
            known = self._namespaces[name] = NamespaceWatch(name, self._parts)
        return known

    def add(
        self,
        cnx: ServedConnection,
        namespace: NamespaceName,
        watcher: TopicListWatcher,
        pattern: str,
    ) -> Watch:
        """Add a watch that is being made.

        Raises:
            RequestError: There is no room for it.
        """
        self.check_room(WATCHER_BYTES)
        created = asyncio.get_running_loop().create_future()
        watch = Watch(self.namespace(namespace), pattern, watcher, created)
        self.of(cnx).by_id[watcher.sender.watcher_id] = watch
        watch.namespace.users += 1
        self._totals.watchers += 1
        return watch

    def take(self, cnx: ServedConnection, watcher_id: int) -> Watch | None:
        """End a watch and return it; None when there is none."""
        watches = self._watches.get(cnx)
        watch = watches.by_id.pop(watcher_id, None) if watches is not None else None
        if watch is not None:
            self._end(watch)
        return watch

    def forget(self, cnx: ServedConnection, watch: Watch) -> None:
        """End a watch that could not be made, unless it has ended already."""
        watcher_id = watch.watcher.sender.watcher_id
        watches = self._watches.get(cnx)
        if watches is not None and watches.by_id.get(watcher_id) is watch:
            self.take(cnx, watcher_id)

    def cancel_owner(self, cnx: ServedConnection) -> None:
        """End the watches of a connection that is gone, in this turn."""
        watches = self._watches.pop(cnx, None)
        if watches is not None:
            for watch in watches.by_id.values():
                self._end(watch)

    def _end(self, watch: Watch) -> None:
        """Let go of a watch's set, and of the namespace with its last one."""
        namespace = watch.namespace
        watch.ended = True
        watch.watcher.close()
        self._totals.watchers -= 1
        if watch.watcher.watched is not None:
            namespace.leave(watch.watcher.watched)
        namespace.users -= 1
        if not namespace.users:
            namespace.stop()
            self._namespaces.pop(namespace.namespace, None)
