"""The file of an SQLite store, which a single thread reads and writes."""

from __future__ import annotations

import fcntl
import json
import sqlite3
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from broker.own_files import make_own_files
from broker.stores.changes import StoreError, TopicState
from broker.stores.conditions import (
    COUNTED_TOPICS,
    check_conditions,
    check_unchanged,
    properties_to_delete,
    properties_to_keep,
    settled,
    what_is_new,
)
from broker.stores.sqlite.tables import INSIDE, SqliteTables, inside, texts
from broker.stores.store import DEFAULT_POLICIES, NamespacePolicies, NamespaceSnapshot
from proto.names import NamespaceName

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from io import FileIO
    from pathlib import Path

    from broker.stores.changes import NamespaceChanges, TopicChanges
    from broker.stores.property_rows import PropertyRows

T = TypeVar("T")

PAGE_CACHE_KIB = 65_536
"""Page cache: imports write all over the properties index."""
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
CREATE TABLE IF NOT EXISTS policies (
    namespace TEXT PRIMARY KEY, bundles INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tenants (
    name TEXT PRIMARY KEY, roles TEXT NOT NULL, clusters TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS configuration (
    key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS message_policies (
    name TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY (name, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS marks (
    name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS schemas (
    namespace TEXT NOT NULL, topic TEXT NOT NULL, version INTEGER NOT NULL, kind TEXT NOT NULL,
    data BLOB NOT NULL, properties TEXT NOT NULL, stored_at INTEGER NOT NULL,
    deleted INTEGER NOT NULL, PRIMARY KEY (namespace, topic, version)) WITHOUT ROWID;
INSERT OR IGNORE INTO marks VALUES ('first_version', 0);
INSERT OR IGNORE INTO tenants
    SELECT DISTINCT substr(name, 1, instr(name, '/') - 1), '[]', '[]' FROM namespaces;
"""
_NAMESPACE_TABLES = ("topics", "partitioned", "properties", "policies", "schemas")


class SqliteFile(SqliteTables):
    """An open SQLite file (WAL mode), locked for one broker and used by a single thread.

    Args:
        path: The file; a missing folder is created.

    Raises:
        OSError, sqlite3.Error: The file cannot be opened or written.
        StoreError: Another broker has the file open.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        make_own_files(path, path.with_name(f"{path.name}.lock"))
        self._lock = _locked(path)
        try:
            self._connection = _connected(path)
        except BaseException:
            self._lock.close()
            raise

    def close(self) -> None:
        """Close the file and release the broker's lock on it."""
        self._connection.close()
        self._lock.close()

    # -- namespaces ---------------------------------------------------------------------------

    def namespaces(self, tenant: str | None) -> list[NamespaceName]:
        """Return all namespaces, or those of one tenant, sorted by name.

        Raises:
            ValueError, TypeError: A name is invalid.
        """
        query, values = "SELECT name FROM namespaces", tuple[str, ...]()
        if tenant is not None:
            query, values = f"{query} WHERE {INSIDE}", inside(tenant)
        rows = texts(self._rows(f"{query} ORDER BY name", *values))
        return [NamespaceName.parse(name) for (name,) in rows]

    def create_namespace(
        self, name: str, policies: NamespacePolicies, document: Mapping[str, object]
    ) -> bool:
        """Create an empty namespace with its message policies; return False if it exists."""
        with self._transaction():
            if self._rows("SELECT 1 FROM namespaces WHERE name=?", name):
                return False
            self._insert_namespace(name, self.first_version(), policies)
            self._changed_rows("DELETE FROM message_policies WHERE name=?", name)
            rows = [(name, key, json.dumps(value)) for key, value in document.items()]
            self._connection.executemany("INSERT INTO message_policies VALUES (?, ?, ?)", rows)
            return True

    def _insert_namespace(self, name: str, version: int, policies: NamespacePolicies) -> None:
        self.insert_tenant(name.partition("/")[0])
        self._changed_rows("INSERT INTO namespaces VALUES (?, ?)", name, version)
        self._changed_rows("INSERT OR REPLACE INTO policies VALUES (?, ?)", name, policies.bundles)

    def first_version(self) -> int:
        """Return a version for new namespaces, higher than that of any deleted namespace."""
        return int(self._rows("SELECT value FROM marks WHERE name='first_version'")[0][0])

    def version(self, name: str) -> int:
        """Return a namespace's version; 0 if the namespace does not exist."""
        rows = self._rows("SELECT version FROM namespaces WHERE name=?", name)
        return int(rows[0][0]) if rows else 0

    def policies(self, name: str) -> NamespacePolicies | None:
        """Return a namespace's policies; None if the namespace does not exist."""
        if not self._rows("SELECT 1 FROM namespaces WHERE name=?", name):
            return None
        kept = self._rows("SELECT bundles FROM policies WHERE namespace=?", name)
        return NamespacePolicies(int(kept[0][0])) if kept else DEFAULT_POLICIES

    def delete_all(
        self, namespaces: Mapping[NamespaceName, NamespaceSnapshot | None]
    ) -> dict[NamespaceName, NamespaceSnapshot]:
        """Delete namespaces with their topics in one transaction; return their last snapshots.

        Args:
            namespaces: The newest version of each namespace, where known.
        """
        with self._transaction():
            last = {name: known or self.read(str(name)) for name, known in namespaces.items()}
            found = {name: one for name, one in last.items() if one is not None}
            for name, one in found.items():
                self._delete_namespace(str(name), one.version + 1)
            return found

    def _delete_namespace(self, name: str, version: int) -> None:
        """Delete a namespace; in the feed, the deletion has the number ``version``."""
        for table in _NAMESPACE_TABLES:
            self._changed_rows(f"DELETE FROM {table} WHERE namespace=?", name)
        self._changed_rows("DELETE FROM namespaces WHERE name=?", name)
        mark = "UPDATE marks SET value=max(value, ?) WHERE name='first_version'"
        self._changed_rows(mark, version)

    # -- topics -------------------------------------------------------------------------------

    def read(self, name: str) -> NamespaceSnapshot | None:
        """Return a namespace's newest snapshot; None if the namespace does not exist."""
        version = self._rows("SELECT version FROM namespaces WHERE name=?", name)
        if not version:
            return None
        topics = self._rows("SELECT name FROM topics WHERE namespace=? ORDER BY name", name)
        counts = self._rows("SELECT name, partitions FROM partitioned WHERE namespace=?", name)
        texts([row[:1] for row in counts])
        return NamespaceSnapshot.from_rows(
            int(version[0][0]), [row[0] for row in topics], dict(counts)
        )

    def select(self, name: str, properties: Mapping[str, str]) -> list[bytes]:
        """Return the names of topics that have every given property, in bytewise order.

        System topics are included.
        """
        (key, value), *others = self._rarest_first(name, list(properties.items()))
        query = (
            "SELECT name FROM properties AS p WHERE namespace=? AND key=? AND value=?"
            " AND EXISTS (SELECT 1 FROM topics AS t"
            " WHERE t.namespace=p.namespace AND t.name=p.name)"
        )
        one = " AND EXISTS (SELECT 1 FROM properties AS q WHERE q.namespace=p.namespace"
        query += f"{one} AND q.name=p.name AND q.key=? AND q.value=?)" * len(others)
        values = [text for pair in others for text in pair]
        query += " ORDER BY name"
        return [row[0] for row in self._rows(query, name, key, value, *values)]

    def _rarest_first(self, name: str, pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """Return properties with that of the fewest topics first, so that few rows are read."""
        some = "SELECT 1 FROM properties WHERE namespace=? AND key=? AND value=? LIMIT ?"
        for most in COUNTED_TOPICS if len(pairs) > 1 else ():
            count = f"SELECT count(*) FROM ({some})"
            found = [self._rows(count, name, *pair, most)[0][0] for pair in pairs]
            rarest = found.index(min(found))
            if found[rarest] < most:
                return [pairs[rarest], *pairs[:rarest], *pairs[rarest + 1 :]]
        return pairs

    def properties(self, name: str, topic: str) -> dict[str, str]:
        """Return a topic's properties, sorted by key."""
        query = "SELECT key, value FROM properties WHERE namespace=? AND name=? ORDER BY key"
        return dict(self._rows(query, name, topic.encode()))

    def write(
        self, name: str, known: NamespaceSnapshot | None, changes: TopicChanges
    ) -> tuple[NamespaceSnapshot, NamespaceSnapshot, TopicChanges]:
        """Commit a change; return the snapshots before and after it, and what it really changed."""
        check_conditions(known.exists if known is not None else None, changes)
        before = known or NamespaceSnapshot(self.first_version())
        if changes.unchanged is not None:
            topic = changes.unchanged.name
            partitions = before.partitioned.get(topic, 0)
            check_unchanged(changes, TopicState(topic, partitions, self.properties(name, topic)))
        changes = settled(before, changes, partial(self.properties, name))
        after = before.changed(changes)
        with self._transaction():
            if known is None:
                self._insert_namespace(name, after.version, DEFAULT_POLICIES)
            self._changed_rows("UPDATE namespaces SET version=? WHERE name=?", after.version, name)
            self._write_topics(name, changes)
            if known is not None:
                self._delete_properties(name, changes)
            self._insert_properties(name, properties_to_keep(after.exists, changes))
        return before, after, changes

    def write_new(
        self, changes: Sequence[NamespaceChanges]
    ) -> tuple[int, list[TopicChanges | None]]:
        """Write the topics of new namespaces in one transaction; skip namespaces that exist.

        Returns:
            The version of the new namespaces, and each written change; None for an existing
                namespace.
        """
        version = self.first_version() + 1
        with self._transaction():
            return version, [self._write_new(str(name), version, one) for name, one in changes]

    def _write_new(self, name: str, version: int, changes: TopicChanges) -> TopicChanges | None:
        if self._rows("SELECT 1 FROM namespaces WHERE name=?", name):
            return None
        made = what_is_new(changes, {}, frozenset(), {})
        self._insert_namespace(name, version, DEFAULT_POLICIES)
        self._write_topics(name, made)
        self._insert_properties(name, made.properties)
        return made

    def _write_topics(self, name: str, changes: TopicChanges) -> None:
        gone = frozenset(changes.removed)
        self._each("DELETE FROM topics WHERE namespace=? AND name=?", name, changes.removed)
        added = [topic for topic in changes.added if topic not in gone]
        self._each("INSERT OR IGNORE INTO topics VALUES (?, ?)", name, added)
        counts = [(name, base, count) for base, count in changes.partitioned.items()]
        query = "INSERT OR REPLACE INTO partitioned VALUES (?, ?, ?)"
        self._connection.executemany(query, [row for row in counts if row[2]])
        forgotten = [base for _, base, count in counts if not count]
        self._each("DELETE FROM partitioned WHERE namespace=? AND name=?", name, forgotten)

    def _delete_properties(self, name: str, changes: TopicChanges) -> None:
        """Delete the properties of removed names and of names that get new properties."""
        replaced = changes.properties.names if changes.properties is not None else ()
        names = [*properties_to_delete(changes), *replaced]
        self._each("DELETE FROM properties WHERE namespace=? AND name=?", name, names)

    def _insert_properties(self, name: str, rows: PropertyRows | None) -> None:
        if rows is not None:
            values = ((name, key, value, topic) for topic, key, value in rows.triples())
            self._connection.executemany("INSERT INTO properties VALUES (?, ?, ?, ?)", values)

    def _each(self, query: str, name: str, topics: Sequence[object]) -> None:
        self._connection.executemany(query, ((name, topic) for topic in topics))


def _locked(path: Path) -> FileIO:
    """Lock the file for this broker; the lock ends with the process, however that ends."""
    lock = path.with_name(f"{path.name}.lock").open("ab", buffering=0)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise StoreError(
            f"metadataStoreUrl: {path} is in use by another broker; "
            "brokers that share topics need a store of postgresql://"
        ) from None
    return lock


def _connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute(f"PRAGMA cache_size=-{PAGE_CACHE_KIB}")
        connection.executescript(_SCHEMA)
    except BaseException:
        connection.close()
        raise
    return connection
