"""Queries of a PostgreSQL store, whose values are always bound, never part of the query's text."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from broker.stores.conditions import COUNTED_TOPICS
from broker.stores.postgresql.view import KnownNamespace, LoggedChange

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

    from broker.stores.postgresql.connections import Connection, Row

ROWS_PER_FETCH = 10_000
"""Rows per fetch of names or partition counts, so that other tasks can run."""
CHANGES_PER_FETCH = 20
"""Log entries per fetch, each with up to MAX_TOLD_NAMES names."""
MAX_CAUGHT_UP_CHANGES = 1_000
"""Most log entries that a broker reads to catch up; a broker further behind lists again."""
_LOG = """
SELECT version, complete, added, removed, bases, partitions FROM floodgate.changes
WHERE namespace = $1 AND version > $2 AND version <= $3 ORDER BY version LIMIT $4
"""
# The queries get a good plan under any statistics: the searched value is a whole index entry, or a
# prefix in index order.
_RAREST = """
SELECT w.key, w.value, (SELECT count(*) FROM (SELECT 1 FROM floodgate.properties p
    WHERE p.namespace = $1 AND p.key = w.key AND p.value = w.value LIMIT $4) few) AS found
FROM unnest($2::bytea[], $3::bytea[]) AS w (key, value) ORDER BY found LIMIT 1
"""
_SELECT = """
SELECT p.name FROM floodgate.properties p
WHERE p.namespace = $1 AND p.key = $2 AND p.value = $3
AND (SELECT count(*) FROM unnest($4::bytea[], $5::bytea[]) AS w (key, value)
    WHERE (SELECT count(*) FROM floodgate.properties q WHERE q.namespace = $1
        AND q.name = p.name AND q.key = w.key AND q.value = w.value) = 1) = $6
ORDER BY p.name
"""
_NAMES = "SELECT name FROM floodgate.topics WHERE namespace = $1 ORDER BY name"
_COUNTS = "SELECT name, partitions FROM floodgate.partitioned WHERE namespace = $1"
_SOME_PARTITIONED = """
SELECT name FROM floodgate.partitioned WHERE namespace = $1 AND name = ANY($2::bytea[])
"""
_SOME_TOPICS = "SELECT name FROM floodgate.topics WHERE namespace = $1 AND name = ANY($2::bytea[])"


@dataclass(frozen=True, slots=True)
class NamespaceRows:
    """The topics, partition counts and log entries of a namespace, read from the database.

    Attributes:
        known: The namespace's number in the database, and its version.
        names: Topics in bytewise order.
        partitioned: Partition counts by full base name.
        log: Changes logged after the version that the caller knew.
    """

    known: KnownNamespace
    names: Sequence[bytes]
    partitioned: Mapping[str, int]
    log: Sequence[LoggedChange]


async def read_version(connection: Connection, namespace: str) -> KnownNamespace | None:
    """Return a namespace's number and version; None if the namespace does not exist."""
    query = "SELECT id, version FROM floodgate.namespaces WHERE name = $1"
    row = await connection.fetchrow(query, namespace)
    return KnownNamespace(*row) if row is not None else None


async def read_versions(
    connection: Connection, namespaces: Sequence[str]
) -> Mapping[str, KnownNamespace]:
    """Return the numbers and versions of those of the given namespaces that exist."""
    query = "SELECT name, id, version FROM floodgate.namespaces WHERE name = ANY($1::text[])"
    rows = await connection.fetch(query, list(namespaces))
    return {row[0]: KnownNamespace(row[1], row[2]) for row in rows}


async def read_server_start(connection: Connection) -> str:
    """Return the time at which the database server started.

    A different time means that the server restarted, or is another server.
    """
    start: str = await connection.fetchval("SELECT pg_postmaster_start_time()::text")
    return start


async def read_names_of(connection: Connection, numbers: Iterable[int]) -> list[str]:
    """Return the names of the namespaces that have the given numbers."""
    query = "SELECT name FROM floodgate.namespaces WHERE id = ANY($1::bigint[])"
    return [row[0] for row in await connection.fetch(query, list(numbers))]


async def read_log(
    connection: Connection, known: KnownNamespace, newest: KnownNamespace
) -> list[LoggedChange]:
    """Return the logged changes of a namespace between two versions.

    At most MAX_CAUGHT_UP_CHANGES are returned.
    """
    log, after = list[LoggedChange](), known.version
    while len(log) < MAX_CAUGHT_UP_CHANGES:
        rows = await connection.fetch(_LOG, newest.id, after, newest.version, CHANGES_PER_FETCH)
        log += map(_logged, rows)
        if len(rows) < CHANGES_PER_FETCH:
            break
        after = log[-1].version
    return log


def _logged(row: Row) -> LoggedChange:
    version, complete, added, removed, bases, partitions = row
    counts = dict(zip([base.decode() for base in bases], partitions, strict=True))
    return LoggedChange(version, complete, added, removed, counts)


async def read_namespace(
    connection: Connection, namespace: str, known: KnownNamespace | None
) -> NamespaceRows | None:
    """Return a namespace's topics, all read in one consistent state; None if it does not exist.

    Args:
        connection: A connection without concurrent users.
        namespace: Name of the namespace.
        known: Start version of the log; None to skip the log.
    """
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        newest = await read_version(connection, namespace)
        if newest is None:
            return None
        names, counts = list[bytes](), dict[str, int]()
        async for rows in _fetched(connection, _NAMES, newest.id):
            names.extend([row[0] for row in rows])
        async for rows in _fetched(connection, _COUNTS, newest.id):
            counts.update([(row[0].decode(), row[1]) for row in rows])
        log = await read_log(connection, known, newest) if known is not None else []
        return NamespaceRows(newest, names, counts, log)


async def _fetched(connection: Connection, query: str, number: int) -> AsyncIterator[list[Row]]:
    cursor = await connection.cursor(query, number)
    while rows := await cursor.fetch(ROWS_PER_FETCH):
        yield rows


async def select_names(
    connection: Connection, namespace: str, properties: Mapping[str, str]
) -> list[bytes]:
    """Return the names of topics that have every given property, in bytewise order.

    System topics are included.
    """
    names = list[bytes]()
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        known = await read_version(connection, namespace)
        if known is None:
            return names
        pairs = [(key.encode(), value.encode()) for key, value in properties.items()]
        query, values = await _selection(connection, known.id, pairs)
        cursor = await connection.cursor(query, *values)
        while rows := await cursor.fetch(ROWS_PER_FETCH):
            found = [row[0] for row in rows]
            names.extend(await _topics_among(connection, known.id, found))
    return names


async def _selection(
    connection: Connection, number: int, pairs: Sequence[tuple[bytes, bytes]]
) -> tuple[str, tuple[object, ...]]:
    """Return an SQL query that selects topics by their properties, and the values to bind.

    The rarest property limits the topics examined, in any order of the properties; if even the
    rarest is frequent, all topics are read and compared.
    """
    keys, values = [key for key, _ in pairs], [value for _, value in pairs]
    for most in COUNTED_TOPICS if len(pairs) > 1 else ():
        rarest = await connection.fetchrow(_RAREST, number, keys, values, most)
        if rarest is not None and rarest[2] < most:
            return _SELECT, (number, *rarest[:2], keys, values, len(keys))
    each = [
        "SELECT name FROM floodgate.properties"
        f" WHERE namespace = $1 AND key = ${2 * place} AND value = ${2 * place + 1}"
        for place in range(1, len(pairs) + 1)
    ]
    query = f"{' INTERSECT '.join(each)} ORDER BY name"
    return query, (number, *chain.from_iterable(pairs))


async def _topics_among(connection: Connection, number: int, names: list[bytes]) -> list[bytes]:
    """Return the names without those that only belong to partitioned topics."""
    partitioned = {row[0] for row in await connection.fetch(_SOME_PARTITIONED, number, names)}
    if not partitioned:
        return names
    topics = {row[0] for row in await connection.fetch(_SOME_TOPICS, number, list(partitioned))}
    return [name for name in names if name not in partitioned or name in topics]


async def read_properties(connection: Connection, namespace: str, name: str) -> dict[str, str]:
    """Return a topic's properties, sorted by key."""
    query = (
        "SELECT p.key, p.value FROM floodgate.properties p JOIN floodgate.namespaces n"
        " ON n.id = p.namespace WHERE n.name = $1 AND p.name = $2 ORDER BY p.key"
    )
    rows = await connection.fetch(query, namespace, name.encode())
    return {row[0].decode(): row[1].decode() for row in rows}
