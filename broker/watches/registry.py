"""The watches of each connection, the watched namespaces, and the memory budget."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.watches.rules import REFUSED
from broker.watches.sets.namespace_watch import NamespaceWatch
from limiter.backoff import Backoff
from server.connection.request_errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.configuration.watch_keys import WatchSettings
    from broker.stores.feed import Change
    from broker.watches.sets.context import FollowingContext, WatchTotals
    from broker.watches.watcher import TopicListWatcher
    from proto.names import NamespaceName
    from server.connection.served_connection import ServedConnection

WATCHER_BYTES = 1_024
"""Memory of a watcher beside its set."""


@dataclass(slots=True)
class CnxWatches:
    """The watches of one connection."""

    backoff: Backoff = field(default_factory=Backoff)
    by_id: dict[int, Watch] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Watch:
    """The watch of one watcher id of a connection, from its first request on.

    Attributes:
        pattern: Pattern of the first request, without its domain; later requests do not change it.
        created: Done when the first request was answered.
        pending: Requests waiting for the watch's creation, with their tasks.
        asked_again: Whether the id was requested again.
        ended: Whether the watch was closed.
    """

    namespace: NamespaceWatch
    pattern: str
    watcher: TopicListWatcher
    created: asyncio.Future[None]
    pending: dict[int, asyncio.Task[None] | None] = field(default_factory=dict)
    asked_again: bool = False
    ended: bool = False


class WatchRegistry:
    """All watches of one broker.

    Bound: ``settings.max_bytes`` for names, sets and watchers together; beyond, a watch is refused,
    and the client polls.

    Args:
        context: Shared by all watched namespaces.
        settings: The bounds.
        totals: Counters for the metrics.
    """

    def __init__(
        self, context: FollowingContext, settings: WatchSettings, totals: WatchTotals
    ) -> None:
        self.settings = settings
        self._context = context
        self.totals = totals
        self._watches: dict[ServedConnection, CnxWatches] = {}
        self._namespaces: dict[NamespaceName, NamespaceWatch] = {}

    @property
    def held_bytes(self) -> int:
        """Approximate memory of all watches."""
        names = sum(one.sets.held_bytes for one in self._namespaces.values())
        return names + WATCHER_BYTES * self.totals.watchers

    @property
    def sets(self) -> int:
        """Number of distinct watched sets."""
        return sum(len(one.sets) for one in self._namespaces.values())

    @property
    def connections(self) -> Iterable[ServedConnection]:
        """Connections that have requested a watch."""
        return tuple(self._watches)

    def check_room(self, more_bytes: int = 0) -> None:
        """Refuse a watch beyond the budget.

        Raises:
            RequestError: NotAllowedError, which makes clients poll instead.
        """
        most = self.settings.max_bytes
        if most <= 0:
            return
        held = self.held_bytes + more_bytes
        if held > most:
            self.totals.refused += 1
            raise RequestError(
                pb.NotAllowedError,
                f"{REFUSED}watches would take {held} of {most} bytes: raise "
                "floodgateTopicWatchMaxBytes, or watch fewer different patterns",
            )

    def push(self, change: Change) -> None:
        """Pass a change of the store to its namespace, if watched."""
        namespace = self._namespaces.get(change.namespace)
        if namespace is not None:
            namespace.push(change)

    def missed_some(self) -> None:
        """List all namespaces again, after changes of unknown namespaces were dropped."""
        for namespace in self._namespaces.values():
            namespace.fall_behind()

    def of(self, cnx: ServedConnection) -> CnxWatches:
        """Return the watches of a connection."""
        return self._watches.setdefault(cnx, CnxWatches())

    def watched(self, cnx: ServedConnection) -> set[NamespaceName]:
        """Return the namespaces watched by a connection."""
        watches = self._watches.get(cnx)
        return {one.namespace.namespace for one in watches.by_id.values()} if watches else set()

    def namespace(self, name: NamespaceName) -> NamespaceWatch:
        """Return a watched namespace, following it from now on."""
        known = self._namespaces.get(name)
        if known is None:
            known = self._namespaces[name] = NamespaceWatch(name, self._context)
        return known

    def add(
        self,
        cnx: ServedConnection,
        namespace: NamespaceName,
        watcher: TopicListWatcher,
        pattern: str,
    ) -> Watch:
        """Register a watch before its creation.

        Raises:
            RequestError: The budget is used up.
        """
        self.check_room(WATCHER_BYTES)
        created = asyncio.get_running_loop().create_future()
        watch = Watch(self.namespace(namespace), pattern, watcher, created)
        self.of(cnx).by_id[watcher.sender.watcher_id] = watch
        watch.namespace.users += 1
        self.totals.watchers += 1
        return watch

    def take(self, cnx: ServedConnection, watcher_id: int) -> Watch | None:
        """End a watch and return it; None if missing."""
        watches = self._watches.get(cnx)
        watch = watches.by_id.pop(watcher_id, None) if watches is not None else None
        if watch is not None:
            self._end(watch)
        return watch

    def forget(self, cnx: ServedConnection, watch: Watch) -> None:
        """End a watch after a failed creation, unless already ended."""
        watcher_id = watch.watcher.sender.watcher_id
        watches = self._watches.get(cnx)
        if watches is not None and watches.by_id.get(watcher_id) is watch:
            self.take(cnx, watcher_id)

    def cancel_owner(self, cnx: ServedConnection) -> None:
        """End the watches of a closed connection."""
        watches = self._watches.pop(cnx, None)
        if watches is not None:
            for watch in watches.by_id.values():
                self._end(watch)

    def _end(self, watch: Watch) -> None:
        """Drop a watch's set, and the namespace with its last watch."""
        namespace = watch.namespace
        watch.ended = True
        watch.watcher.close()
        self.totals.watchers -= 1
        if watch.watcher.watched is not None:
            namespace.leave(watch.watcher.watched)
        namespace.users -= 1
        if not namespace.users:
            namespace.stop()
            self._namespaces.pop(namespace.namespace, None)
