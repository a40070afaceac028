"""A broker's copies of namespaces, which it shares with other brokers through one database.

A broker keeps snapshots of requested namespaces. When PostgreSQL notifies it of
a change, the broker reads the names from the table of changes, changes its snapshot, and tells
watchers, in order and once. Missed changes, and changes already deleted from the table, become one
incomplete change.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from enum import Enum
from typing import TYPE_CHECKING

from broker.stores.changes import Change, ChangeFeeds, StoreError, TopicChanges
from broker.stores.conditions import MANY_NAMES, end_of, is_large, parted
from broker.stores.name_locks import NameLocks
from broker.stores.postgresql import reading
from broker.stores.postgresql.listener import ResyncTasks
from broker.stores.postgresql.namespaces import create_namespace, delete_namespaces
from broker.stores.postgresql.new_namespaces import write_new
from broker.stores.postgresql.schema import batched
from broker.stores.postgresql.view import (
    NOT_THERE,
    KnownNamespace,
    NamespaceView,
    changes_to_publish,
    in_sequence,
    net_changes,
)
from broker.stores.postgresql.writing import WrittenChange, write_change
from broker.stores.store import NamespacePolicies, NamespaceSnapshot
from proto.names import NamespaceName
from server.tasks.cooperative import in_turns
from server.tasks.freed_memory import free

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from broker.stores.cached_store import SnapshotCache
    from broker.stores.changes import NamespaceChanges
    from broker.stores.postgresql.connections import Connection
    from limiter.clock import Clock

NAMESPACES_AT_ONCE = 1_000
"""Most new namespaces committed, and locked, together."""


class Chore(Enum):
    """A task that searches several namespaces for changes that other brokers made."""

    NEW_NAMESPACES = "new namespaces"
    MISSED_NOTIFICATIONS = "missed notifications"


class SharedNamespaces:
    """A broker's copies of the database's namespaces, updated when other brokers change them."""

    def __init__(
        self,
        use: Callable[[], AbstractAsyncContextManager[Connection]],
        feeds: ChangeFeeds,
        cache: SnapshotCache,
        clock: Clock,
    ) -> None:
        self._use = use
        self._feeds = feeds
        self._cache = cache
        self._view = NamespaceView(cache, feeds)
        self._locks: NameLocks[NamespaceName] = NameLocks()
        self._resyncs = ResyncTasks(self._resync, clock)
        # Namespaces with lost notifications: all missed changes become one change.
        self._missed: set[NamespaceName] = set()
        # Numbers of namespaces not read since creation.
        self._unknown: set[int] = set()
        self._server_start = ""

    async def opened(self, connection: Connection) -> None:
        """Record the start time of the database server, by which a restart is noticed later."""
        self._server_start = await reading.read_server_start(connection)

    async def close(self) -> None:
        """Cancel the tasks that fetch changes made by other brokers."""
        await self._resyncs.close()

    # -- reading ------------------------------------------------------------------------------

    async def snapshot(self, namespace: NamespaceName) -> NamespaceSnapshot | None:
        """Return a namespace's newest snapshot known to this broker; None if it does not exist."""
        cached = self._cache.get(namespace)
        if cached is not None:
            return cached
        async with self._locks.of(namespace):
            return self._cache.get(namespace) or await self._load(namespace)

    async def _load(self, namespace: NamespaceName) -> NamespaceSnapshot | None:
        known = self._view.known(namespace)
        async with self._use() as connection:
            found = await reading.read_namespace(connection, str(namespace), known)
        if found is None:
            self._gone(namespace)
            return None
        snapshot = await _built(found.known.version, found.names, found.partitioned)
        changes = changes_to_publish(namespace, known, found.known, found.log)
        self._view.show(namespace, found.known, snapshot, changes)
        return snapshot

    def _gone(self, namespace: NamespaceName) -> None:
        """Record that a namespace does not exist, so that its later creation is published."""
        known = self._view.known(namespace)
        version = known.version if known is not None else -1
        if known is not None and known.id != NOT_THERE:
            version += 1
        gone = KnownNamespace(NOT_THERE, version)
        self._view.show(namespace, gone, None, changes_to_publish(namespace, known, gone, ()))

    # -- changing -----------------------------------------------------------------------------

    async def create(
        self,
        namespace: NamespaceName,
        policies: NamespacePolicies,
        document: Mapping[str, object],
        sender: str,
    ) -> bool:
        """Create an empty namespace with its message policies; return False if it exists."""
        async with self._locks.of(namespace):
            async with self._use() as connection:
                created = await create_namespace(connection, namespace, policies, document, sender)
            if created is not None:
                self._view.show(namespace, created, None)
            return created is not None

    async def delete(self, namespace: NamespaceName) -> bool:
        """Delete a namespace that has no user topics; return False if it does not exist."""
        return bool(await self._delete([namespace], with_topics=False))

    async def delete_all(
        self, namespaces: Sequence[NamespaceName]
    ) -> Mapping[NamespaceName, NamespaceSnapshot]:
        """Delete namespaces with their topics, in batches; return their last snapshots."""
        found: dict[NamespaceName, NamespaceSnapshot] = {}
        for some in batched(sorted(namespaces, key=str), NAMESPACES_AT_ONCE):
            found |= await self._delete(some, with_topics=True)
        return found

    async def _delete(
        self, namespaces: Sequence[NamespaceName], *, with_topics: bool
    ) -> Mapping[NamespaceName, NamespaceSnapshot]:
        names, found = list(map(str, namespaces)), dict[NamespaceName, NamespaceSnapshot]()
        async with self._locked(namespaces):
            async with self._use() as connection:
                gone = await delete_namespaces(connection, names, with_topics=with_topics)
            async for namespace in in_turns(namespaces):
                last = gone.get(str(namespace))
                if last is None:
                    continue
                found[namespace] = await _built(last.version, last.names, {})
                await free(last.names)
                change = end_of(namespace, found[namespace])
                known = KnownNamespace(NOT_THERE, change.version)
                self._view.show(namespace, known, None, [change])
        return found

    @asynccontextmanager
    async def _locked(self, namespaces: Sequence[NamespaceName]) -> AsyncIterator[None]:
        """Hold the locks of all given namespaces during the ``with`` block.

        The namespaces are sorted, so that two callers cannot block each other.
        """
        async with AsyncExitStack() as locks:
            async for namespace in in_turns(namespaces):
                await locks.enter_async_context(self._locks.of(namespace))
            yield

    async def apply(self, namespace: NamespaceName, changes: TopicChanges) -> int:
        """Commit a change of a namespace, then publish it to readers of the feeds."""
        async with self._locks.of(namespace):
            async with self._use() as connection:
                written = await write_change(connection, namespace, changes)
            await self._show_own(namespace, written)
            return written.known.version

    async def apply_all(self, changes: Sequence[NamespaceChanges]) -> None:
        """Commit changes of several namespaces: of new ones in batches, of others one by one."""
        apart, together = parted(changes)
        for some in batched(sorted(together, key=_name_of), NAMESPACES_AT_ONCE):
            apart += await self._apply_new(some)
        for namespace, change in apart:
            await self.apply(namespace, change)

    async def _apply_new(self, changes: Sequence[NamespaceChanges]) -> list[NamespaceChanges]:
        """Commit and publish the topics of new namespaces.

        Return the changes of namespaces that already exist; they are not committed.
        """
        async with self._locked([namespace for namespace, _ in changes]):
            async with self._use() as connection:
                written = await write_new(connection, changes)
            async for namespace, one in in_turns(written.items()):
                if self._view.known(namespace) is None:
                    # The namespace was never read and need not be remembered.
                    logged = one.logged
                    change = Change(namespace, logged.version, logged.added, (), logged.complete)
                    self._feeds.publish(change)
                else:
                    await self._show_own(namespace, one)
        return [one for one in changes if one[0] not in written]

    async def _show_own(self, namespace: NamespaceName, written: WrittenChange) -> None:
        known, newest = self._view.known(namespace), written.known
        before = KnownNamespace(newest.id, newest.version - 1)
        if written.fresh or known in (None, before):
            # The snapshot of a recreated namespace belongs to its predecessor.
            after = None if written.fresh else self._cache.peek(namespace)
            if after is not None:
                after = await _changed(after, written.changes, newest.version)
            told = changes_to_publish(namespace, before, newest, [written.logged])
            self._view.show(namespace, newest, after, told)
            return
        try:
            await self._resync_locked(namespace)
        except StoreError:
            # The change is committed despite the error: readers must list again.
            self._view.show(
                namespace, newest, None, changes_to_publish(namespace, known, newest, ())
            )

    # -- changes by other brokers ------------------------------------------------------------

    def notified(self, payload: str) -> None:
        """Start to fetch the changes of a namespace that another broker changed.

        ``payload`` holds the namespace's number and its new version.
        """
        number, version = map(int, payload.split())
        namespace = self._view.name_of(number)
        if namespace is None and self._feeds:
            # A reader may have requested the namespace before its creation.
            self._unknown.add(number)
            self._resyncs.request(Chore.NEW_NAMESPACES)
        if namespace is None or not (self._feeds or self._cache.peek(namespace)):
            return
        known = self._view.known(namespace)
        if known is not None and known.version < version:
            self._resyncs.request(namespace)

    def reconnected(self) -> None:
        """Start to look for changes that were missed without a database connection."""
        self._resyncs.request(Chore.MISSED_NOTIFICATIONS)

    async def _resync(self, what: NamespaceName | Chore) -> None:
        if what is Chore.NEW_NAMESPACES:
            await self._look_for_new()
        elif what is Chore.MISSED_NOTIFICATIONS:
            await self._compare_all()
        else:
            async with self._locks.of(what):
                await self._resync_locked(what)

    async def _resync_locked(self, namespace: NamespaceName) -> None:
        known = self._view.known(namespace)
        if known is None:
            return
        async with self._use() as connection:
            newest = await reading.read_version(connection, str(namespace))
            log = await reading.read_log(connection, known, newest) if newest is not None else []
        if newest is None:
            self._gone(namespace)
        elif newest != known:
            whole = in_sequence(known, newest, log)
            after = self._cache.peek(namespace) if whole else None
            if after is not None:
                after = await _changed(after, net_changes(log), newest.version)
            told = changes_to_publish(
                namespace, known, newest, [] if namespace in self._missed else log
            )
            self._view.show(namespace, newest, after, told)
        self._missed.discard(namespace)

    async def _look_for_new(self) -> None:
        numbers = frozenset(self._unknown)
        async with self._use() as connection:
            names = await reading.read_names_of(connection, numbers)
        self._unknown -= numbers
        async for name in in_turns(names):
            namespace = NamespaceName.parse(name)
            if self._view.known(namespace) is not None:
                self._resyncs.request(namespace)

    async def _compare_all(self) -> None:
        known = self._view.all_known()
        async with self._use() as connection:
            found = await reading.read_versions(connection, [str(name) for name in known])
            start = await reading.read_server_start(connection)
        if start != self._server_start:
            # The server may have lost its last changes: equal versions prove nothing.
            for namespace in known:
                async with self._locks.of(namespace):
                    self._distrust(namespace, found.get(str(namespace)))
            self._server_start = start
            return
        for namespace, seen in known.items():
            newest = found.get(str(namespace))
            if newest != seen and not (newest is None and seen.id == NOT_THERE):
                self._missed.add(namespace)
                self._resyncs.request(namespace)

    def _distrust(self, namespace: NamespaceName, newest: KnownNamespace | None) -> None:
        """Drop a namespace's snapshot, as it may be outdated; make all readers list it again."""
        if newest is None:
            self._gone(namespace)
            return
        change = Change(namespace, newest.version, complete=False)
        self._view.show(namespace, newest, None, [change])


def _name_of(change: NamespaceChanges) -> str:
    return str(change[0])


async def _built(
    version: int, names: Sequence[bytes], partitioned: Mapping[str, int]
) -> NamespaceSnapshot:
    """Return a namespace's snapshot; a large one is built off the event loop."""
    build = NamespaceSnapshot.from_rows
    if len(names) + len(partitioned) > MANY_NAMES:
        return await asyncio.to_thread(build, version, names, partitioned)
    return build(version, names, partitioned)


async def _changed(
    before: NamespaceSnapshot, changes: TopicChanges, version: int
) -> NamespaceSnapshot:
    """Return a snapshot after a change; a large change is computed off the event loop."""
    if is_large(changes):
        return await asyncio.to_thread(before.changed, changes, version)
    return before.changed(changes, version)
