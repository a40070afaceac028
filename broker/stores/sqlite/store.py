"""The store ``sqlite:///path``: one file, used by a single thread, which survives kill -9.

The file is authoritative; snapshots are built on first request and kept in a cache bounded in
bytes. A change is committed before snapshot and feed are updated.
"""

from __future__ import annotations

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from broker.stores.cached_store import CachedStore
from broker.stores.changes import NamespaceNotEmptyError, StoreError, TopicChanges
from broker.stores.conditions import end_of, feed_change, parted
from broker.stores.database_tables import DatabaseTables
from broker.stores.name_locks import to_its_end
from broker.stores.sqlite.file import SqliteFile
from broker.stores.store import (
    DEFAULT_POLICIES,
    NO_DOCUMENT,
    NamespacePolicies,
    NamespaceSnapshot,
)
from server.tasks.cooperative import in_turns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from broker.stores.changes import NamespaceChanges
    from proto.names import NamespaceName


P = ParamSpec("P")
T = TypeVar("T")

NAMESPACES_AT_ONCE = 1_000
"""Namespaces deleted together, while other requests wait for the file."""


class SqliteStore(CachedStore, DatabaseTables):
    """A store of topics in a SQLite file (WAL mode). See MetadataStore.

    Only one broker at a time can open the file.

    Args:
        path: The file; a missing folder is created.
        cache_bytes: Limit for cached snapshots in bytes; the least recently used is evicted first.
    """

    def __init__(self, path: Path, cache_bytes: int) -> None:
        super().__init__(cache_bytes)
        self._path = path
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sqlite")
        self._file: SqliteFile | None = None
        self._lock = asyncio.Lock()

    def __repr__(self) -> str:
        return f"<SqliteStore {self._path}, {len(self._cache)} namespaces cached>"

    async def open(self) -> None:
        """Open the SQLite file, and create it if it does not exist.

        Raises:
            StoreError: The file is no broker's SQLite file, not writable, or used by another
                broker.
        """
        try:
            self._file = await self._in_thread(SqliteFile, self._path)
        except (OSError, sqlite3.Error, UnicodeDecodeError) as error:
            self._thread.shutdown()
            raise StoreError(f"metadataStoreUrl: {self._path} cannot be opened: {error}") from None
        except StoreError:
            self._thread.shutdown()
            raise

    async def close(self) -> None:
        """Finish the change in progress, then close the file and the feeds of all readers."""
        async with self._lock:
            self._feeds.close()
            file, self._file = self._file, None
            if file is not None:
                await self._in_thread(file.close)
            self._thread.shutdown(wait=False)

    # -- tenants and namespaces ---------------------------------------------------------------

    async def delete_tenant(self, name: str) -> bool:
        """Delete a tenant that has no namespaces; return False if it does not exist."""
        return await self._run(SqliteFile.delete_tenant, name)

    async def namespaces(self, tenant: str | None = None) -> Sequence[NamespaceName]:
        """Return all namespaces, or those of one tenant, sorted by name."""
        return await self._read(SqliteFile.namespaces, tenant)

    async def create_namespace(
        self,
        namespace: NamespaceName,
        policies: NamespacePolicies = DEFAULT_POLICIES,
        document: Mapping[str, object] = NO_DOCUMENT,
    ) -> bool:
        """Create an empty namespace; return False if it already exists.

        A missing tenant is created.
        """
        async with self._lock:
            return await self._read(SqliteFile.create_namespace, str(namespace), policies, document)

    async def policies(self, namespace: NamespaceName) -> NamespacePolicies | None:
        """Return a namespace's policies; None if the namespace does not exist."""
        return await self._read(SqliteFile.policies, str(namespace))

    async def delete_namespace(self, namespace: NamespaceName) -> bool:
        """Delete a namespace that has no user topics; return False if it does not exist."""
        return bool(await to_its_end(self._delete([namespace], with_topics=False)))

    async def delete_all(
        self, namespaces: Sequence[NamespaceName]
    ) -> Mapping[NamespaceName, NamespaceSnapshot]:
        """Delete namespaces with all their topics, many of them in one transaction."""
        found: dict[NamespaceName, NamespaceSnapshot] = {}
        for first in range(0, len(namespaces), NAMESPACES_AT_ONCE):
            some = namespaces[first : first + NAMESPACES_AT_ONCE]
            found |= await to_its_end(self._delete(some, with_topics=True))
        return found

    async def _delete(
        self, namespaces: Sequence[NamespaceName], *, with_topics: bool
    ) -> Mapping[NamespaceName, NamespaceSnapshot]:
        async with self._lock:
            known = {namespace: self._cache.peek(namespace) for namespace in namespaces}
            if not with_topics:
                known = {namespace: await self._load(namespace) for namespace in namespaces}
                if not all(one is None or one.empty for one in known.values()):
                    raise NamespaceNotEmptyError
            found = await self._read(SqliteFile.delete_all, known)
            async for namespace, last in in_turns(found.items()):
                self._cache.forget(namespace)
                self._feeds.publish(end_of(namespace, last))
            return found

    # -- topics -------------------------------------------------------------------------------

    async def snapshot(self, namespace: NamespaceName) -> NamespaceSnapshot | None:
        """Return the newest snapshot of a namespace; None if the namespace does not exist."""
        cached = self._cache.get(namespace)
        if cached is not None:
            return cached
        async with self._lock:
            return await self._load(namespace)

    async def _load(self, namespace: NamespaceName) -> NamespaceSnapshot | None:
        """Return a namespace's cached snapshot, or read and cache it.

        The caller holds the store's lock, so that no snapshot is read twice.
        """
        snapshot = self._cache.get(namespace)
        if snapshot is None:
            snapshot = await self._read(SqliteFile.read, str(namespace))
            if snapshot is not None:
                self._cache.keep(namespace, snapshot)
        return snapshot

    async def _version(self, namespace: NamespaceName) -> int:
        return await self._run(SqliteFile.version, str(namespace))

    async def _names_with(
        self, namespace: NamespaceName, properties: Mapping[str, str]
    ) -> list[bytes]:
        return await self._read(SqliteFile.select, str(namespace), dict(properties))

    async def properties(self, namespace: NamespaceName, name: str) -> Mapping[str, str]:
        """Return a topic's or partitioned topic's properties; empty if it has none."""
        return await self._read(SqliteFile.properties, str(namespace), name)

    async def apply(self, namespace: NamespaceName, changes: TopicChanges) -> int:
        """Commit a change of a namespace, then publish it to readers of the feeds."""
        return await to_its_end(self._apply(namespace, changes))

    async def _apply(self, namespace: NamespaceName, changes: TopicChanges) -> int:
        async with self._lock:
            known = await self._load(namespace)
            written = await self._run(SqliteFile.write, str(namespace), known, changes)
            before, after, made = written
            self._cache.keep(namespace, after)
            self._feeds.publish(feed_change(namespace, before, after.version, made))
            return after.version

    async def apply_all(self, changes: Sequence[NamespaceChanges]) -> None:
        """Apply changes of several namespaces; those of new namespaces share one commit."""
        return await to_its_end(self._apply_all(changes))

    async def _apply_all(self, changes: Sequence[NamespaceChanges]) -> None:
        apart, together = parted(changes)
        async with self._lock:
            version, made = await self._run(SqliteFile.write_new, together)
            before = NamespaceSnapshot(version - 1)
            async for place, (namespace, change) in in_turns(enumerate(together)):
                if (new := made[place]) is None:
                    apart.append((namespace, change))
                else:
                    self._feeds.publish(feed_change(namespace, before, version, new))
        for namespace, change in apart:
            await self._apply(namespace, change)

    # -- tables beside topics -----------------------------------------------------------------

    async def _texts(self, make: Callable[..., T], query: str, *values: object) -> list[T]:
        def made(file: SqliteFile) -> list[T]:
            return file.made_of_texts(make, query, *values)

        return await self._read(made)

    async def _rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        return await self._run(SqliteFile.rows, query, *values)

    async def _change(
        self, query: str, *values: object, tells: tuple[str, str | None] | None = None
    ) -> int:
        return await self._run(SqliteFile.change, query, *values)

    @staticmethod
    def _stored(text: str) -> str:
        return text

    async def delete_policies(self, names: Sequence[str]) -> None:
        """Delete all message policies of the given namespaces and topics."""
        await self._run(SqliteFile.delete_policies, names)

    async def next_instance(self) -> int:
        """Return the number of earlier calls of this method, by any process."""
        return await self._run(SqliteFile.next_instance)

    def on_policies(self, callback: Callable[[str], None]) -> None:
        """Do nothing: no other process shares the file."""

    def on_configuration(self, callback: Callable[[], None]) -> None:
        """Do nothing: no other process shares the file."""

    # -- the store's thread -------------------------------------------------------------------

    async def _read(
        self, work: Callable[Concatenate[SqliteFile, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Read from the file; raise a StoreError for contents that no broker wrote.

        Raises:
            StoreError: As ``_run``; also for contents not written by a broker.
        """
        try:
            return await self._run(work, *args, **kwargs)
        except (ValueError, TypeError) as error:
            raise self._changed_by_others(error) from None

    def _changed_by_others(self, error: Exception) -> StoreError:
        return StoreError(
            f"metadataStoreUrl: {self._path} holds data not written by a broker ({error}): restore "
            "a copy, or begin with an empty file"
        )

    async def _run(
        self, work: Callable[Concatenate[SqliteFile, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a function with the file in the store's thread; convert its errors to a StoreError.

        Raises:
            StoreError: The file is closed, or cannot be read or written; the sentence gives the
                reason.
        """
        if self._file is None:
            raise StoreError("the store is closed")
        try:
            return await self._in_thread(work, self._file, *args, **kwargs)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            # Even the error of a broken file may be undecodable.
            raise StoreError(f"metadataStoreUrl: {self._path} failed: {error}") from None

    async def _in_thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, lambda: work(*args, **kwargs))
