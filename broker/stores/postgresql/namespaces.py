"""Creation and deletion of namespaces in a PostgreSQL store.

Creating a namespace takes a shared lock of the row ``first_version`` of ``marks``; deleting a
namespace takes an exclusive lock. So a recreated namespace continues above its old versions.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from broker.stores.changes import NamespaceNotEmptyError
from broker.stores.postgresql.tables import (
    FIRST_VERSION,
    changed_rows,
    delete_all_schemas,
    delete_policies,
    insert_tenant,
)
from broker.stores.postgresql.view import KnownNamespace
from proto.names import is_system_topic

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from broker.stores.postgresql.connections import Connection
    from broker.stores.store import NamespacePolicies
    from proto.names import NamespaceName


async def create_namespace(
    connection: Connection,
    namespace: NamespaceName,
    policies: NamespacePolicies,
    document: Mapping[str, object],
    sender: str,
) -> KnownNamespace | None:
    """Create an empty namespace with its message policies, and notify other brokers of it.

    Return the namespace's number and version; None if it already exists.
    """
    async with connection.transaction():
        number = await insert_namespace(connection, namespace, policies)
        if number is None:
            return None
        version = await connection.fetchval(FIRST_VERSION)
        await delete_policies(connection, [str(namespace)], sender)
        query = "INSERT INTO floodgate.message_policies VALUES ($1, $2, $3)"
        for key, value in document.items():
            await connection.execute(query, str(namespace).encode(), key, json.dumps(value))
        return KnownNamespace(number, version)


async def insert_namespace(
    connection: Connection, namespace: NamespaceName, policies: NamespacePolicies
) -> int | None:
    """Insert the rows of a namespace and, if it does not exist, of its tenant.

    Return the namespace's number; None if the namespace exists.

    The caller's transaction holds the row's lock.
    """
    version = await connection.fetchval(f"{FIRST_VERSION} FOR SHARE")
    await insert_tenant(connection, namespace.tenant)
    query = (
        "INSERT INTO floodgate.namespaces (name, tenant, version, bundles)"
        " VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING RETURNING id"
    )
    tenant = namespace.tenant.encode()
    number: int | None = await connection.fetchval(
        query, str(namespace), tenant, version, policies.bundles
    )
    return number


_NAMES_PER_FETCH = 1_000
_ROWS_PER_DELETE = 50_000
_TABLES = ("topics", "partitioned", "properties", "changes")
_LOCKED = """
SELECT id, name, version FROM floodgate.namespaces WHERE name = ANY($1::text[])
ORDER BY name FOR UPDATE
"""
_NAMES = """
SELECT namespace, name FROM floodgate.topics WHERE namespace = ANY($1::bigint[])
ORDER BY namespace, name
"""
_DELETED = """
WITH gone AS (DELETE FROM floodgate.namespaces WHERE id = ANY($1::bigint[]) RETURNING id, version),
marked AS (UPDATE floodgate.marks SET value = greatest(value, (SELECT max(version) + 1 FROM gone))
    WHERE name = 'first_version')
SELECT pg_notify('floodgate_topics', id || ' ' || version + 1) FROM gone
"""


class DeletedNamespace(NamedTuple):
    """The last version of a deleted namespace, and its topics.

    Attributes:
        version: Last version.
        names: Deleted topics, in order.
    """

    version: int
    names: list[bytes]


async def delete_namespaces(
    connection: Connection, namespaces: Sequence[str], *, with_topics: bool
) -> Mapping[str, DeletedNamespace]:
    """Delete namespaces; return the last version and topics of each that existed.

    Raises:
        NamespaceNotEmptyError: A namespace holds user topics or partitioned topics, and
            ``with_topics`` is false.
    """
    async with connection.transaction():
        # All writers lock the rows in the same order.
        await connection.execute(f"{FIRST_VERSION} FOR UPDATE")
        rows = await connection.fetch(_LOCKED, list(namespaces))
        found = {row[0]: DeletedNamespace(row[2], []) for row in rows}
        if not found:
            return {}
        await _read_topics(connection, found, with_topics=with_topics)
        for table in _TABLES:
            await _delete_rows(connection, table, found)
        await delete_all_schemas(connection, [row[1] for row in rows])
        await connection.execute(_DELETED, list(found))
        return {row[1]: found[row[0]] for row in rows}


async def _read_topics(
    connection: Connection, found: Mapping[int, DeletedNamespace], *, with_topics: bool
) -> None:
    """Add the topics of namespaces to ``found``, a dict by namespace number.

    Raises:
        NamespaceNotEmptyError: A namespace holds user topics, and ``with_topics`` is false.
    """
    query = "SELECT 1 FROM floodgate.partitioned WHERE namespace = ANY($1::bigint[]) LIMIT 1"
    if not with_topics and await connection.fetchval(query, list(found)):
        raise NamespaceNotEmptyError
    cursor = await connection.cursor(_NAMES, list(found))
    while rows := await cursor.fetch(_NAMES_PER_FETCH):
        if not (with_topics or all(is_system_topic(row[1].decode()) for row in rows)):
            raise NamespaceNotEmptyError
        for number, name in rows:
            found[number].names.append(name)


async def _delete_rows(connection: Connection, table: str, numbers: Collection[int]) -> None:
    """Delete the rows of namespaces from a table, in batches that keep the statement time limit."""
    inside = "namespace = ANY($1::bigint[])"
    some = f"SELECT ctid FROM floodgate.{table} WHERE {inside} LIMIT {_ROWS_PER_DELETE}"
    query = f"DELETE FROM floodgate.{table} WHERE ctid = ANY(ARRAY({some}))"
    while changed_rows(await connection.execute(query, list(numbers))):
        pass
