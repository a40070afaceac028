"""Registry of a broker's watches by connection and by namespace, with a limit on their memory.

A namespace's listing is admitted by the heap limit before names are read.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.errors import illegal_argument, too_large
from broker.stores.changes import StoreError
from broker.watches.rules import REFUSED
from broker.watches.sets.namespace_watch import NamespaceWatch
from limiter.backoff import Backoff
from limiter.clock import clock_sleep
from limiter.errors import PermitAcquireError, PermitTooLargeError
from limiter.memory.dual_limiter import LimitType
from server.connection.request_errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.listing.estimates import ListingEstimate
    from broker.stores.changes import Change
    from broker.watches.context import WatchContext
    from broker.watches.rules import WatchProfile
    from broker.watches.sender import WatchSender
    from broker.watches.watcher import TopicListWatcher
    from proto.names import NamespaceName
    from server.connection.served_connection import ServedConnection

WATCHER_BYTES = 1_024
"""Memory of a watcher beside its set."""


@dataclass(slots=True)
class CnxWatches:
    """The watches of one connection, by the watcher id that the client chose."""

    backoff: Backoff = field(default_factory=Backoff)
    by_id: dict[int, Watch] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Watch:
    """A client's watch of a namespace's topics, from its first request until it is closed.

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
    """All watches of a broker, with a limit on their memory.

    Bound: ``settings.max_bytes`` for names, sets and watchers together; beyond, a watch is refused,
    and the client polls.

    Args:
        context: Shared by all watched namespaces.
    """

    def __init__(self, context: WatchContext) -> None:
        self.settings = context.settings
        self._context = context
        self.totals = context.totals
        self._watches: dict[ServedConnection, CnxWatches] = {}
        self._namespaces: dict[NamespaceName, NamespaceWatch] = {}

    @property
    def held_bytes(self) -> int:
        """Approximate memory of all watches of the broker, in bytes."""
        names = sum(one.sets.held_bytes for one in self._namespaces.values())
        return names + WATCHER_BYTES * self.totals.watchers

    @property
    def sets(self) -> int:
        """Number of watched sets of names; watches of the same pattern share a set."""
        return sum(len(one.sets) for one in self._namespaces.values())

    @property
    def connections(self) -> Iterable[ServedConnection]:
        """The connections that have requested a watch."""
        return tuple(self._watches)

    def check_room(self, more_bytes: int = 0) -> None:
        """Refuse a watch that would exceed the memory limit of all watches.

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
        """Pass a change of topics to the watches of its namespace, if there are any."""
        namespace = self._namespaces.get(change.namespace)
        if namespace is not None:
            namespace.push(change)

    def missed_some(self) -> None:
        """Make all watched namespaces be listed again, as changes from the store were lost."""
        for namespace in self._namespaces.values():
            namespace.fall_behind()

    def of(self, cnx: ServedConnection) -> CnxWatches:
        """Return the watches of a connection, by watcher id."""
        return self._watches.setdefault(cnx, CnxWatches())

    def watched(self, cnx: ServedConnection) -> set[NamespaceName]:
        """Return the namespaces whose topics a connection watches."""
        watches = self._watches.get(cnx)
        return {one.namespace.namespace for one in watches.by_id.values()} if watches else set()

    def namespace(self, name: NamespaceName) -> NamespaceWatch:
        """Return the watched sets of a namespace, which from now on receive its changes."""
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
        """Register a watch, whose set of names is determined later.

        Raises:
            RequestError: All watches together would exceed their memory limit.
        """
        self.check_room(WATCHER_BYTES)
        created = asyncio.get_running_loop().create_future()
        watch = Watch(self.namespace(namespace), pattern, watcher, created)
        self.of(cnx).by_id[watcher.sender.watcher_id] = watch
        watch.namespace.users += 1
        self.totals.watchers += 1
        return watch

    def take(self, cnx: ServedConnection, watcher_id: int) -> Watch | None:
        """End a watch of a connection and return it; None if the connection has no such watch."""
        watches = self._watches.get(cnx)
        watch = watches.by_id.pop(watcher_id, None) if watches is not None else None
        if watch is not None:
            self._end(watch)
        return watch

    def forget(self, cnx: ServedConnection, watch: Watch) -> None:
        """End a watch whose creation failed, unless it has already ended."""
        watcher_id = watch.watcher.sender.watcher_id
        watches = self._watches.get(cnx)
        if watches is not None and watches.by_id.get(watcher_id) is watch:
            self.take(cnx, watcher_id)

    def cancel_owner(self, cnx: ServedConnection) -> None:
        """End all watches of a closed connection."""
        watches = self._watches.pop(cnx, None)
        if watches is not None:
            for watch in watches.by_id.values():
                self._end(watch)

    def _end(self, watch: Watch) -> None:
        """Close a watch; the last watch of a namespace also drops the names of its topics."""
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


PERSISTENT = pb.CommandGetTopicsOfNamespace.PERSISTENT


class NamespaceListings:
    """Lists namespaces for new watches, within the heap limit of topic lists."""

    def __init__(self, context: WatchContext, registry: WatchRegistry) -> None:
        self._context = context
        self._profile = context.profile
        self._registry = registry

    async def list(self, namespace: NamespaceName, sender: WatchSender) -> None:
        """List a namespace, requesting memory until it is granted or the watch ends.

        Raises:
            RequestError: The estimate exceeds the heap limit, or the store cannot be read.
        """
        while not sender.closed:
            estimate = self._context.estimates.of(namespace, PERSISTENT)
            try:
                await self._list_once(namespace, sender.cnx, estimate)
            except PermitAcquireError:
                self._context.totals.retries += 1
                await clock_sleep(self._context.clock, sender.backoff.next())
            except PermitTooLargeError as error:
                raise limit_exceeded(
                    error, "heap estimate", LimitType.HEAP_MEMORY, self._profile
                ) from None
            except StoreError as error:
                raise RequestError(pb.MetadataError, str(error)) from None
            else:
                sender.backoff.reset()
                return
            finally:
                estimate.failed()

    async def _list_once(
        self, namespace: NamespaceName, cnx: ServedConnection, estimate: ListingEstimate
    ) -> None:
        reserved = await estimate.size()
        key = (namespace, PERSISTENT, "watch")
        async with self._context.memory.heap(key, reserved, cnx, str(namespace)) as heap:
            listing = await self._context.lister.list_topics(namespace, PERSISTENT)
            await heap.resize(estimate.listed(listing))
            if not self._profile.lists_for_each_request:
                watched = self._registry.namespace(namespace)
                if not watched.is_read:
                    self._registry.check_room(listing.estimated_bytes)
                await watched.read()


def limit_exceeded(
    error: PermitTooLargeError, what: str, limit_type: LimitType, profile: WatchProfile
) -> RequestError:
    """Return the error for a request that needs more memory than a limit allows."""
    if profile.java_errors:
        return illegal_argument(error)
    return too_large(error, what, limit_type)
