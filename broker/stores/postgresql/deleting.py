"""Deletion of namespaces in PostgreSQL, all of a call in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker.stores.changes import NamespaceNotEmptyError
from broker.stores.postgresql.namespaces import FIRST_VERSION, changed_some
from broker.stores.postgresql.topic_schemas import delete_schemas
from proto.names import is_system_topic

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from broker.stores.postgresql.driver import Connection

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
    """A deleted namespace.

    Attributes:
        version: Last version.
        names: Deleted topics, in order.
    """

    version: int
    names: list[bytes]


async def delete_namespaces(
    connection: Connection, namespaces: Sequence[str], *, with_topics: bool
) -> Mapping[str, DeletedNamespace]:
    """Delete namespaces; return the deleted namespaces by name.

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
        await delete_schemas(connection, [row[1] for row in rows])
        await connection.execute(_DELETED, list(found))
        return {row[1]: found[row[0]] for row in rows}


async def _read_topics(
    connection: Connection, found: Mapping[int, DeletedNamespace], *, with_topics: bool
) -> None:
    """Read the topics of namespaces into ``found``, by namespace number.

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
    """Delete the rows of namespaces in batches, each within the statement time limit."""
    inside = "namespace = ANY($1::bigint[])"
    some = f"SELECT ctid FROM floodgate.{table} WHERE {inside} LIMIT {_ROWS_PER_DELETE}"
    query = f"DELETE FROM floodgate.{table} WHERE ctid = ANY(ARRAY({some}))"
    while changed_some(await connection.execute(query, list(numbers))):
        pass
