"""Topic schemas in PostgreSQL. See TopicSchemas."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from broker.stores.topic_schemas import StoredSchema

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from broker.stores.postgresql.driver import Connection

TABLE = """
CREATE TABLE IF NOT EXISTS floodgate.schemas (
    namespace text COLLATE "C" NOT NULL, topic bytea NOT NULL, version bigint NOT NULL,
    kind text NOT NULL, data bytea NOT NULL, properties bytea NOT NULL,
    stored_at bigint NOT NULL, deleted boolean NOT NULL,
    PRIMARY KEY (namespace, topic, version));
"""
_SELECT = """
SELECT version, kind, data, properties, stored_at, deleted FROM floodgate.schemas
WHERE namespace = $1 AND topic = $2 ORDER BY version
"""
_INSERT = """
INSERT INTO floodgate.schemas VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING
"""


class PostgresqlTopicSchemas:
    """The table of schemas, shared by brokers.

    Args:
        use: Lends a connection.
    """

    def __init__(self, use: Callable[[], AbstractAsyncContextManager[Connection]]) -> None:
        self._use = use

    async def of(self, topic: str) -> Sequence[StoredSchema]:
        """Return all versions of a topic, in order."""
        async with self._use() as connection:
            found = await connection.fetch(_SELECT, *_key(topic))
        return [
            StoredSchema(version, kind, data, json.loads(properties), stored_at, deleted)
            for version, kind, data, properties, stored_at, deleted in found
        ]

    async def add(self, topic: str, schema: StoredSchema) -> bool:
        """Add a version; false if present."""
        properties = json.dumps(dict(schema.properties)).encode()
        async with self._use() as connection:
            status = await connection.execute(
                _INSERT,
                *_key(topic),
                schema.version,
                schema.kind,
                schema.data,
                properties,
                schema.stored_at,
                schema.deleted,
            )
        return status.endswith(" 1")

    async def delete(self, topic: str) -> None:
        """Delete all versions of a topic."""
        query = "DELETE FROM floodgate.schemas WHERE namespace = $1 AND topic = $2"
        async with self._use() as connection:
            await connection.execute(query, *_key(topic))


async def delete_schemas(connection: Connection, namespaces: Sequence[str]) -> None:
    """Delete the schemas of namespaces, within the caller's transaction."""
    query = "DELETE FROM floodgate.schemas WHERE namespace = ANY($1::text[])"
    await connection.execute(query, namespaces)


def _key(topic: str) -> tuple[str, bytes]:
    """Return namespace and name of a topic."""
    tenant, namespace, name = topic.split("/", 2)
    return f"{tenant}/{namespace}", name.encode()
