"""Writing of changes of topics to PostgreSQL; each transaction locks its namespace's row.

The lock makes conditions and change one step, and versions gapless. A notification carries only the
namespace's number and version; the names are in the log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

from broker.stores.changes import MAX_TOLD_NAMES, TopicState
from broker.stores.conditions import (
    MANY_NAMES,
    check_conditions,
    check_unchanged,
    growing,
    is_large,
    keeps_all_properties,
    looked_up,
    properties_to_delete,
    properties_to_keep,
    what_is_new,
)
from broker.stores.postgresql.namespaces import insert_namespace
from broker.stores.postgresql.reading import read_properties
from broker.stores.postgresql.schema import (
    ROWS_PER_STATEMENT,
    batched,
    check_names,
    copy_rows,
    property_records,
)
from broker.stores.postgresql.view import KnownNamespace, LoggedChange
from broker.stores.store import DEFAULT_POLICIES
from server.tasks.freed_memory import free

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from broker.stores.changes import TopicChanges
    from broker.stores.postgresql.connections import Connection
    from broker.stores.property_rows import PropertyRows
    from proto.names import NamespaceName

MAX_LOGGED_CHANGES = 10_000
"""Log entries kept for a namespace; a broker further behind lists again."""
PRUNED_EVERY = 100
"""Number of versions after which old log entries are deleted."""
_EXISTING = """
SELECT name FROM floodgate.topics WHERE namespace = $1 AND name = ANY($2::bytea[])
UNION ALL SELECT name FROM floodgate.partitioned WHERE namespace = $1 AND name = ANY($2::bytea[])
"""
_COUNTS = """
SELECT name, partitions FROM floodgate.partitioned WHERE namespace = $1 AND name = ANY($2::bytea[])
"""
_PROPERTIES = """
SELECT name, key, value FROM floodgate.properties WHERE namespace = $1 AND name = ANY($2::bytea[])
"""
_INSERT_TOPICS = """
INSERT INTO floodgate.topics SELECT $1, unnest($2::bytea[]) ON CONFLICT DO NOTHING RETURNING name
"""
_MERGE_TOPICS = """
INSERT INTO floodgate.topics SELECT $1, unnest($2::bytea[]) ON CONFLICT DO NOTHING
"""
_DELETE_TOPICS = "DELETE FROM floodgate.topics WHERE namespace = $1 AND name = ANY($2::bytea[])"
_DELETE_PROPERTIES = """
DELETE FROM floodgate.properties WHERE namespace = $1 AND name = ANY($2::bytea[])
"""
_INSERT_COUNTS = """
INSERT INTO floodgate.partitioned SELECT $1, * FROM unnest($2::bytea[], $3::integer[])
ON CONFLICT (namespace, name) DO UPDATE SET partitions = excluded.partitions
"""
_DELETE_COUNTS = """
DELETE FROM floodgate.partitioned WHERE namespace = $1 AND name = ANY($2::bytea[])
"""
_COMMITTED = """
WITH bumped AS (UPDATE floodgate.namespaces SET version = version + 1 WHERE id = $1
    RETURNING version),
logged AS (INSERT INTO floodgate.changes SELECT $1, version, $2, $3, $4, $5, $6 FROM bumped)
SELECT version, pg_notify('floodgate_topics', $1 || ' ' || version) FROM bumped
"""


@dataclass(frozen=True, slots=True)
class WrittenChange:
    """A committed change of a namespace: its new version, and what really changed.

    Attributes:
        known: The namespace's number, and version with the change.
        logged: The log entry.
        fresh: Whether the change created the namespace.
        changes: The change without already existing names.
    """

    known: KnownNamespace
    logged: LoggedChange
    fresh: bool
    changes: TopicChanges


async def write_change(
    connection: Connection, namespace: NamespaceName, changes: TopicChanges
) -> WrittenChange:
    """Commit a change of a namespace's topics, and log it, in one transaction.

    Raises:
        TopicExistsError, TopicMissingError, TopicChangedError, NamespaceMissingError: See
            MetadataStore.apply.
        StoreError: A name or property is longer than an index entry may be.
    """
    if is_large(changes):
        await asyncio.to_thread(check_names, changes)
    else:
        check_names(changes)
    async with connection.transaction():
        number, fresh = await _locked_namespace(connection, namespace, changes)
        await _check(connection, namespace, number, changes)
        if changes.adds_only:
            changes = await _what_is_new(connection, number, changes, fresh=fresh)
        logged = await _write_topics(connection, number, changes, fresh=fresh)
        await _write_counts(connection, number, changes)
        await _write_properties(connection, number, changes, fresh=fresh)
        version = await _log(connection, number, logged)
    known = KnownNamespace(number, version)
    return WrittenChange(known, replace(logged, version=version), fresh, changes)


async def _locked_namespace(
    connection: Connection, namespace: NamespaceName, changes: TopicChanges
) -> tuple[int, bool]:
    """Lock the row of a namespace, after creating it if it does not exist.

    Return the namespace's number, and whether this transaction created the row.
    """
    query = "SELECT id FROM floodgate.namespaces WHERE name = $1 FOR UPDATE"
    while True:
        number: int | None = await connection.fetchval(query, str(namespace))
        if number is not None:
            return number, False
        check_conditions(None, changes)
        number = await insert_namespace(connection, namespace, DEFAULT_POLICIES)
        if number is not None:
            return number, True


async def _check(
    connection: Connection, namespace: NamespaceName, number: int, changes: TopicChanges
) -> None:
    names = [name.encode() for name in (*changes.absent, *changes.present)]
    if names:
        found = await _existing(connection, number, names)
        check_conditions(lambda name: name.encode() in found, changes)
    if changes.unchanged is not None:
        name = changes.unchanged.name
        counts = await connection.fetch(_COUNTS, number, [name.encode()])
        kept = await read_properties(connection, str(namespace), name)
        check_unchanged(changes, TopicState(name, counts[0][1] if counts else 0, kept))


async def _existing(connection: Connection, number: int, names: Sequence[bytes]) -> set[bytes]:
    return {row[0] for row in await connection.fetch(_EXISTING, number, list(names))}


async def _what_is_new(
    connection: Connection, number: int, changes: TopicChanges, *, fresh: bool
) -> TopicChanges:
    """Return an addition reduced to what does not exist yet; the namespace must be locked."""
    there, counts, kept = NameSet(), dict[str, int](), dict[str, dict[str, str]]()
    for part in () if fresh else batched(looked_up(changes), ROWS_PER_STATEMENT):
        there.add(await _existing(connection, number, part))
    for bases in () if fresh else batched(changes.partitioned, ROWS_PER_STATEMENT):
        rows = await connection.fetch(_COUNTS, number, [base.encode() for base in bases])
        counts |= {name.decode(): count for name, count in rows}
    for bases in batched(growing(changes, counts, there), ROWS_PER_STATEMENT):
        rows = await connection.fetch(_PROPERTIES, number, [base.encode() for base in bases])
        for name, key, value in rows:
            kept.setdefault(name.decode(), {})[key.decode()] = value.decode()
    if not (kept or is_large(changes)):
        return what_is_new(changes, counts, there, kept)
    new = await asyncio.to_thread(what_is_new, changes, counts, there, kept)
    await asyncio.to_thread(there.clear)
    return new


# -- topics -----------------------------------------------------------------------------------


async def _write_topics(
    connection: Connection, number: int, changes: TopicChanges, *, fresh: bool
) -> LoggedChange:
    names = (changes.added, changes.removed, changes.partitioned)
    if sum(map(len, names)) > MAX_TOLD_NAMES:
        await _write_many(connection, number, changes, fresh=fresh)
        return LoggedChange(0, complete=False)
    gone = dict.fromkeys(changes.removed)
    removed = await _fetched(connection, f"{_DELETE_TOPICS} RETURNING name", number, [*gone])
    wanted = [name for name in dict.fromkeys(changes.added) if name not in gone]
    added = await _fetched(connection, _INSERT_TOPICS, number, wanted)
    return LoggedChange(0, True, added, removed, changes.partitioned)


async def _fetched(
    connection: Connection, query: str, number: int, names: Sequence[bytes]
) -> list[bytes]:
    """Run a query for names; return those that it finds, in the order of ``names``."""
    if not names:
        return []
    found = {row[0] for row in await connection.fetch(query, number, names)}
    return [name for name in names if name in found]


async def _write_many(
    connection: Connection, number: int, changes: TopicChanges, *, fresh: bool
) -> None:
    """Write a large change in batches.

    With batches, no statement exceeds its time limit or blocks the event loop.
    """
    for part in batched(changes.removed, ROWS_PER_STATEMENT):
        await connection.execute(_DELETE_TOPICS, number, part)
    wanted = await asyncio.to_thread(_to_add, changes)
    for part in batched(wanted, ROWS_PER_STATEMENT):
        if fresh:
            await copy_rows(connection, "topics", ((number, name) for name in part))
        else:
            # Some names may exist, and COPY cannot skip conflicts.
            await connection.execute(_MERGE_TOPICS, number, part)
    await free(wanted)


def _to_add(changes: TopicChanges) -> list[bytes]:
    """Return the names that a change adds, without duplicates and without names that it removes."""
    seen = NameSet()
    seen.add(changes.removed)
    wanted = list(seen.new(changes.added))
    seen.clear()
    return wanted


async def _write_counts(connection: Connection, number: int, changes: TopicChanges) -> None:
    for part in batched(changes.partitioned.items(), ROWS_PER_STATEMENT):
        counts = {name.encode(): count for name, count in part}
        kept = {name: count for name, count in counts.items() if count}
        if kept:
            await connection.execute(_INSERT_COUNTS, number, list(kept), list(kept.values()))
        if len(kept) < len(counts):
            forgotten = [name for name in counts if name not in kept]
            await connection.execute(_DELETE_COUNTS, number, forgotten)


async def _write_properties(
    connection: Connection, number: int, changes: TopicChanges, *, fresh: bool
) -> None:
    rows = changes.properties
    if rows is not None and not keeps_all_properties(changes):
        there = await _existing(connection, number, rows.names)
        rows = properties_to_keep(lambda name: name.encode() in there, changes)
    if not fresh:
        # Names with new properties lose all old properties.
        forgotten = [*properties_to_delete(changes), *(rows.names if rows is not None else ())]
        for part in batched(forgotten, ROWS_PER_STATEMENT):
            await connection.execute(_DELETE_PROPERTIES, number, part)
    if rows is not None:
        await _copy_properties(connection, number, rows)


async def _copy_properties(connection: Connection, number: int, rows: PropertyRows) -> None:
    batches = batched(property_records(number, rows), ROWS_PER_STATEMENT)
    large = max(len(rows.names), rows.pairs) > MANY_NAMES
    while records := (await asyncio.to_thread(next, batches, []) if large else next(batches, [])):
        await copy_rows(connection, "properties", records)


async def _log(connection: Connection, number: int, logged: LoggedChange) -> int:
    """Increase the namespace's version, log the change, and notify other brokers at the commit."""
    partitioned = logged.partitioned
    version: int = await connection.fetchval(
        _COMMITTED,
        number,
        logged.complete,
        logged.added,
        logged.removed,
        [name.encode() for name in partitioned],
        list(partitioned.values()),
    )
    if version % PRUNED_EVERY == 0:
        query = "DELETE FROM floodgate.changes WHERE namespace = $1 AND version <= $2"
        await connection.execute(query, number, version - MAX_LOGGED_CHANGES)
    return version


PARTS = 256
"""Parts of a set: growing a set of a million names takes 30 ms, growing one part 0.1 ms."""


class NameSet(AbstractSet[bytes]):
    """A set of names divided into 256 small sets, so that no call takes long to grow one."""

    def __init__(self) -> None:
        self._parts: list[set[bytes]] = [set() for _ in range(PARTS)]

    def __contains__(self, name: object) -> bool:
        return name in self._parts[hash(name) % PARTS]

    def __iter__(self) -> Iterator[bytes]:
        return chain.from_iterable(self._parts)

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def new(self, names: Iterable[bytes]) -> Iterator[bytes]:
        """Add names to the set, and yield those that it did not contain."""
        for name in names:
            part = self._parts[hash(name) % PARTS]
            if name not in part:
                part.add(name)
                yield name

    def add(self, names: Iterable[bytes]) -> None:
        """Add names to the set."""
        for _ in self.new(names):
            pass

    def clear(self) -> None:
        """Empty the small sets one by one, so that other threads can run in between."""
        for part in self._parts:
            part.clear()
