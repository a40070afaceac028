"""Writing of the topics of many new namespaces to PostgreSQL, in one transaction.

The additions have no log entry: a broker that has recorded such a namespace as missing lists it
again.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from broker.stores.changes import MAX_TOLD_NAMES
from broker.stores.conditions import what_is_new
from broker.stores.postgresql.schema import (
    ROWS_PER_STATEMENT,
    batched,
    check_names,
    copy_rows,
    property_records,
)
from broker.stores.postgresql.tables import FIRST_VERSION
from broker.stores.postgresql.view import KnownNamespace, LoggedChange
from broker.stores.postgresql.writing import WrittenChange
from broker.stores.store import DEFAULT_POLICIES, TenantInfo

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker.stores.changes import NamespaceChanges, TopicChanges
    from broker.stores.postgresql.connections import Connection
    from proto.names import NamespaceName

_INSERT_TENANTS = """
INSERT INTO floodgate.tenants SELECT unnest($1::bytea[]), $2, $3 ON CONFLICT DO NOTHING
"""
_INSERT_NAMESPACES = """
INSERT INTO floodgate.namespaces (name, tenant, version, bundles)
SELECT name, tenant, $3, $4 FROM unnest($1::text[], $2::bytea[]) AS new (name, tenant)
ON CONFLICT DO NOTHING RETURNING name, id
"""
_NOTIFY = """
SELECT pg_notify('floodgate_topics', number || ' ' || $2::bigint) FROM unnest($1::bigint[]) number
"""


async def write_new(
    connection: Connection, changes: Sequence[NamespaceChanges]
) -> Mapping[NamespaceName, WrittenChange]:
    """Write the topics of new namespaces, and skip namespaces that already exist.

    Args:
        connection: A connection without concurrent users.
        changes: Additions sorted by namespace, so that all brokers lock rows in the same order.

    Returns:
        The written changes, by namespace.

    Raises:
        StoreError: A name or property is longer than an index entry may be.
    """
    await asyncio.to_thread(_check_names, changes)
    async with connection.transaction():
        version = 1 + await connection.fetchval(f"{FIRST_VERSION} FOR SHARE")
        numbers = await _insert_namespaces(connection, [name for name, _ in changes], version)
        there = [(name, change) for name, change in changes if str(name) in numbers]
        written, rows = await asyncio.to_thread(_written, numbers, there, version)
        for table, inserted in rows.items():
            for some in batched(inserted, ROWS_PER_STATEMENT):
                await copy_rows(connection, table, some)
        await connection.execute(_NOTIFY, list(numbers.values()), version)
    return written


def _check_names(changes: Sequence[NamespaceChanges]) -> None:
    for _, change in changes:
        check_names(change)


async def _insert_namespaces(
    connection: Connection, namespaces: Sequence[NamespaceName], version: int
) -> Mapping[str, int]:
    tenants = [name.tenant.encode() for name in namespaces]
    await connection.execute(_INSERT_TENANTS, sorted(set(tenants)), *TenantInfo().as_json())
    names, bundles = list(map(str, namespaces)), DEFAULT_POLICIES.bundles
    rows = await connection.fetch(_INSERT_NAMESPACES, names, tenants, version, bundles)
    return {row[0]: row[1] for row in rows}


def _written(
    numbers: Mapping[str, int], changes: Sequence[NamespaceChanges], version: int
) -> tuple[dict[NamespaceName, WrittenChange], dict[str, list[tuple[object, ...]]]]:
    """Return the change to write for each namespace, and the rows to insert into each table."""
    written: dict[NamespaceName, WrittenChange] = {}
    rows: dict[str, list[tuple[object, ...]]] = {"topics": [], "partitioned": [], "properties": []}
    for name, change in changes:
        number, made = numbers[str(name)], what_is_new(change, {}, frozenset(), {})
        added = list(dict.fromkeys(made.added))
        rows["topics"] += [(number, topic) for topic in added]
        rows["partitioned"] += [(number, base.encode(), n) for base, n in made.partitioned.items()]
        if made.properties is not None:
            rows["properties"] += property_records(number, made.properties)
        known = KnownNamespace(number, version)
        logged = _told(version, added, made)
        written[name] = WrittenChange(known, logged, fresh=True, changes=made)
    return written, rows


def _told(version: int, added: Sequence[bytes], made: TopicChanges) -> LoggedChange:
    if len(added) > MAX_TOLD_NAMES:
        return LoggedChange(version, complete=False)
    return LoggedChange(version, True, added, (), made.partitioned)
