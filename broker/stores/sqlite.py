"""The store of ``sqlite:///path``: one file, one thread, survives kill -9.

The file is the truth; snapshots are built from it when first asked for and kept in a cache
bounded by bytes. A change is committed before the snapshot and the feed learn of it.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from broker.stores.feed import Change, ChangeFeed, ChangeFeeds
from broker.stores.store import NamespaceSnapshot, StoreError, TopicChanges
from proto.names import NamespaceName
from proto.topic_blocks import TopicSequence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from broker.stores.store import Mode

T = TypeVar("T")

_SCHEMA = """
CREATE TABLE IF NOT EXISTS namespaces (
    name TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS topics (
    namespace TEXT NOT NULL, name BLOB NOT NULL, PRIMARY KEY (namespace, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS partitioned (
    namespace TEXT NOT NULL, name TEXT NOT NULL, partitions INTEGER NOT NULL,
    PRIMARY KEY (namespace, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS properties (
    namespace TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, name BLOB NOT NULL,
    PRIMARY KEY (namespace, name, key)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS properties_by_value ON properties (namespace, key, value, name);
"""


class SqliteStore:
    """Topics in a SQLite file (WAL). See MetadataStore.

    Args:
        path: The file; its folder is made if missing.
        cache_bytes: Wire bytes of the snapshots kept; the one unused for longest goes first.
    """

    def __init__(self, path: Path, cache_bytes: int) -> None:
        self._path = path
        self._cache_bytes = cache_bytes
        self._cache: OrderedDict[NamespaceName, NamespaceSnapshot] = OrderedDict()
        self._cached_bytes = 0
        self._feeds = ChangeFeeds()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sqlite")
        self._connection: sqlite3.Connection | None = None
        self._closed = False
        self._turn = asyncio.Lock()

    def __repr__(self) -> str:
        return f"<SqliteStore {self._path}, {len(self._cache)} namespaces cached>"

    @property
    def cached_bytes(self) -> int:
        """Wire bytes of the snapshots that are kept."""
        return self._cached_bytes

    async def open(self) -> None:
        """Open or create the file.

        Raises:
            StoreError: It is no SQLite file of ours, or not writable.
        """
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            await self._in_thread(self._connect)
        except (OSError, sqlite3.Error) as error:
            self._thread.shutdown()
            raise StoreError(f"metadataStoreUrl: {self._path} cannot be opened: {error}") from None

    def _connect(self, _: None = None) -> None:
        connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.executescript(_SCHEMA)
        self._connection = connection

    async def close(self) -> None:
        """Close the file and end every feed, after a change that is being made."""
        async with self._turn:
            self._feeds.close()
            connection, self._connection = self._connection, None
            if connection is not None:
                await self._run(connection.close)
            self._closed = True
            self._thread.shutdown(wait=False)

    async def namespaces(self) -> Sequence[NamespaceName]:
        """Return the namespaces that exist, in order."""
        rows = await self._run(partial(self._rows, "SELECT name FROM namespaces ORDER BY name"))
        return [NamespaceName.parse(name) for (name,) in rows]

    async def create_namespace(self, namespace: NamespaceName) -> bool:
        """Create an empty namespace; false when it exists."""
        return await self._run(partial(self._insert_namespace, str(namespace)))

    async def snapshot(self, namespace: NamespaceName) -> NamespaceSnapshot | None:
        """Return the newest version of a namespace; None when it does not exist."""
        cached = self._cache.get(namespace)
        if cached is not None:
            self._cache.move_to_end(namespace)
            return cached
        async with self._turn:
            return await self._load(namespace)

    async def _load(self, namespace: NamespaceName) -> NamespaceSnapshot | None:
        """Return the cached snapshot or build it; only under the turn, so each is built once."""
        if namespace not in self._cache:
            snapshot = await self._run(partial(self._read, str(namespace)))
            if snapshot is None:
                return None
            self._keep(namespace, snapshot)
        return self._cache.get(namespace)

    def _keep(self, namespace: NamespaceName, snapshot: NamespaceSnapshot) -> None:
        before = self._cache.pop(namespace, None)
        self._cached_bytes += snapshot.wire_bytes - (before.wire_bytes if before else 0)
        self._cache[namespace] = snapshot
        while self._cached_bytes > self._cache_bytes and len(self._cache) > 1:
            _, oldest = self._cache.popitem(last=False)
            self._cached_bytes -= oldest.wire_bytes

    def estimated_bytes(self, namespace: NamespaceName, mode: Mode) -> int | None:
        """Return a listing's heap estimate if its snapshot is cached, else None."""
        cached = self._cache.get(namespace)
        return cached.listing(mode).estimated_bytes if cached is not None else None

    async def select(
        self, namespace: NamespaceName, properties: Mapping[str, str]
    ) -> TopicSequence:
        """Return the persistent user topics that have every given property."""
        snapshot = await self.snapshot(namespace)
        if snapshot is None or not properties:
            return snapshot.persistent if snapshot is not None else TopicSequence()
        one = "SELECT name FROM properties WHERE namespace=? AND key=? AND value=?"
        query = " INTERSECT ".join([one] * len(properties))
        values = [text for pair in properties.items() for text in (str(namespace), *pair)]
        rows = await self._run(partial(self._rows, query, values))
        names = [name for (name,) in rows if name not in snapshot.system]
        return TopicSequence.from_names(n for n in names if n.startswith(b"persistent:"))

    async def apply(self, namespace: NamespaceName, changes: TopicChanges) -> int:
        """Commit changes, then show them: an acknowledged change survives the process."""
        # A caller that leaves must not part what is committed from what is shown.
        work = asyncio.get_running_loop().create_task(self._apply(namespace, changes))
        return await asyncio.shield(work)

    async def _apply(self, namespace: NamespaceName, changes: TopicChanges) -> int:
        async with self._turn:
            before = await self._load(namespace) or NamespaceSnapshot()
            snapshot = before.changed(changes)
            await self._run(partial(self._write, str(namespace), snapshot.version, changes))
            self._keep(namespace, snapshot)
            change = Change(namespace, snapshot.version, changes.added, changes.removed)
            self._feeds.publish(change)
            return snapshot.version

    def changes(self) -> ChangeFeed:
        """Return a new feed of everything that is applied from now on, in order."""
        return self._feeds.open()

    # -- on the store's thread ----------------------------------------------------------------

    async def _run(self, work: Callable[[], T]) -> T:
        """Work with the file.

        Raises:
            StoreError: It is closed, or cannot be read or written; the sentence says why.
        """
        if self._closed:
            raise StoreError("the store is closed")
        try:
            return await self._in_thread(work)
        except sqlite3.Error as error:
            raise StoreError(f"metadataStoreUrl: {self._path} failed: {error}") from None

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _database(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StoreError("the store is closed")
        return self._connection

    def _rows(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        return self._database().execute(query, values).fetchall()

    def _insert_namespace(self, name: str) -> bool:
        query = "INSERT OR IGNORE INTO namespaces VALUES (?, 0)"
        return self._database().execute(query, (name,)).rowcount == 1

    def _read(self, name: str) -> NamespaceSnapshot | None:
        version = self._rows("SELECT version FROM namespaces WHERE name=?", (name,))
        if not version:
            return None
        topics = self._rows("SELECT name FROM topics WHERE namespace=?", (name,))
        counts = self._rows("SELECT name, partitions FROM partitioned WHERE namespace=?", (name,))
        changes = TopicChanges([row[0] for row in topics], (), dict(counts))
        return NamespaceSnapshot(int(version[0][0]) - 1).changed(changes)

    def _write(self, name: str, version: int, changes: TopicChanges) -> None:
        """Commit one change in one transaction."""
        database = self._database()
        database.execute("BEGIN IMMEDIATE")
        try:
            database.execute("INSERT OR REPLACE INTO namespaces VALUES (?, ?)", (name, version))
            for table in ("topics", "properties"):
                database.executemany(
                    f"DELETE FROM {table} WHERE namespace=? AND name=?",
                    ((name, topic) for topic in changes.removed),
                )
            # What has properties in this change keeps none of those it had.
            described = changes.properties.names if changes.properties is not None else ()
            database.executemany(
                "DELETE FROM properties WHERE namespace=? AND name=?",
                ((name, topic) for topic in described),
            )
            gone = frozenset(changes.removed)
            added = ((name, topic) for topic in changes.added if topic not in gone)
            database.executemany("INSERT OR IGNORE INTO topics VALUES (?, ?)", added)
            counts = ((name, base, count) for base, count in changes.partitioned.items())
            database.executemany("INSERT OR REPLACE INTO partitioned VALUES (?, ?, ?)", counts)
            rows = _property_rows(name, changes)
            database.executemany("INSERT OR REPLACE INTO properties VALUES (?, ?, ?, ?)", rows)
            database.execute("COMMIT")
        except BaseException:
            database.execute("ROLLBACK")
            raise


def _property_rows(name: str, changes: TopicChanges) -> Iterator[tuple[str, str, str, bytes]]:
    if changes.properties is not None:
        names = changes.properties.names
        for key, column in changes.properties.columns.items():
            for topic, value in zip(names, column.to_pylist(), strict=True):
                if value is not None:
                    yield name, key, value, topic
