"""Topic schemas in a SQLite file. See TopicSchemas."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Protocol, TypeVar

from broker.stores.topic_schemas import StoredSchema

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence

T = TypeVar("T")

TABLE = """
CREATE TABLE IF NOT EXISTS schemas (
    namespace TEXT NOT NULL, topic TEXT NOT NULL, version INTEGER NOT NULL, kind TEXT NOT NULL,
    data BLOB NOT NULL, properties TEXT NOT NULL, stored_at INTEGER NOT NULL,
    deleted INTEGER NOT NULL, PRIMARY KEY (namespace, topic, version)) WITHOUT ROWID;
"""
_SELECT = """
SELECT version, kind, data, properties, stored_at, deleted FROM schemas
WHERE namespace=? AND topic=? ORDER BY version
"""


class WorkWithFile(Protocol):
    """Runs work on the open file, on the file's thread."""

    async def __call__(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return the result of the work.

        Raises:
            StoreError: The file cannot be read or written.
        """


class SqliteTopicSchemas:
    """The table of schemas.

    Args:
        run: Runs work on the file.
    """

    def __init__(self, run: WorkWithFile) -> None:
        self._run = run

    async def of(self, topic: str) -> Sequence[StoredSchema]:
        """Return all versions of a topic, in order."""
        return await self._run(lambda file: _read(file, topic))

    async def add(self, topic: str, schema: StoredSchema) -> bool:
        """Add a version; false if present."""
        values = (
            *_key(topic),
            schema.version,
            schema.kind,
            schema.data,
            json.dumps(dict(schema.properties)),
            schema.stored_at,
            schema.deleted,
        )
        query = "INSERT OR IGNORE INTO schemas VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        return await self._run(lambda file: file.execute(query, values).rowcount) == 1

    async def delete(self, topic: str) -> None:
        """Delete all versions of a topic."""
        query = "DELETE FROM schemas WHERE namespace=? AND topic=?"
        await self._run(lambda file: file.execute(query, _key(topic)).rowcount)


def _read(file: sqlite3.Connection, topic: str) -> list[StoredSchema]:
    return [
        StoredSchema(version, kind, data, json.loads(properties), stored_at, bool(deleted))
        for version, kind, data, properties, stored_at, deleted in file.execute(
            _SELECT, _key(topic)
        )
    ]


def _key(topic: str) -> tuple[str, str]:
    """Return namespace and name of a topic."""
    tenant, namespace, name = topic.split("/", 2)
    return f"{tenant}/{namespace}", name
