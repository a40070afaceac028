"""PostgreSQL tables of tenants, policies, schemas and configuration, with notifications.

Deleting a tenant takes an exclusive lock of the row ``first_version`` of ``marks``, of which the
creation of a namespace takes a shared lock: no namespace enters a tenant under deletion.
"""

from __future__ import annotations

import uuid
from abc import abstractmethod
from typing import TYPE_CHECKING, TypeVar

from broker.stores.changes import NamespaceNotEmptyError
from broker.stores.database_tables import POLICIES_CHANNEL, DatabaseTables
from broker.stores.store import NamespacePolicies, TenantInfo
from proto.names import NamespaceName
from server.tasks.cooperative import in_turns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from broker.stores.postgresql.connections import Connection, Row

T = TypeVar("T")

FIRST_VERSION = "SELECT value FROM floodgate.marks WHERE name = 'first_version'"
MAX_NOTIFIED_CHARACTERS = 1_000
"""Longest name in a notification: PostgreSQL takes 8,000 bytes; "" stands for any name."""


class PostgresqlTables(DatabaseTables):
    """Methods of the PostgreSQL store for tenants, policies and the like. See MetadataStore."""

    def __init__(self) -> None:
        self._name = uuid.uuid4().hex
        self._configuration_callbacks: list[Callable[[], None]] = []
        self._policy_callbacks: list[Callable[[str], None]] = []

    @abstractmethod
    def use(self) -> AbstractAsyncContextManager[Connection]:
        """Hold a connection; raise an error at once while the database is unreachable."""

    async def _texts(self, make: Callable[..., T], query: str, *values: object) -> list[T]:
        rows = await self._rows(query, *values)
        return [make(*map(_as_text, row)) async for row in in_turns(rows)]

    async def _rows(self, query: str, *values: object) -> list[Row]:
        async with self.use() as connection:
            return await connection.fetch(query.replace("{}", "floodgate."), *values)

    async def _change(
        self, query: str, *values: object, tells: tuple[str, str | None] | None = None
    ) -> int:
        async with self.use() as connection, connection.transaction():
            status = await connection.execute(query.replace("{}", "floodgate."), *values)
            if tells is not None:
                await _notify(connection, self._name, *tells)
        return changed_rows(status)

    @staticmethod
    def _stored(text: str) -> bytes:
        return text.encode()

    async def delete_tenant(self, name: str) -> bool:
        """Delete a tenant that has no namespaces; return False if it does not exist."""
        async with self.use() as connection, connection.transaction():
            await connection.execute(f"{FIRST_VERSION} FOR UPDATE")
            inside = "SELECT 1 FROM floodgate.namespaces WHERE tenant = $1 LIMIT 1"
            if await connection.fetchval(inside, name.encode()):
                raise NamespaceNotEmptyError
            query = "DELETE FROM floodgate.tenants WHERE name = $1"
            return changed_rows(await connection.execute(query, name.encode())) > 0

    async def namespaces(self, tenant: str | None = None) -> Sequence[NamespaceName]:
        """Return all namespaces, or those of one tenant, sorted by name."""
        query, values = "SELECT name FROM floodgate.namespaces", tuple[bytes, ...]()
        if tenant is not None:
            query, values = f"{query} WHERE tenant = $1", (tenant.encode(),)
        async with self.use() as connection:
            rows = in_turns(await connection.fetch(f"{query} ORDER BY name", *values))
            return [NamespaceName.parse(row[0]) async for row in rows]

    async def policies(self, namespace: NamespaceName) -> NamespacePolicies | None:
        """Return a namespace's policies; None if the namespace does not exist."""
        query = "SELECT bundles FROM floodgate.namespaces WHERE name = $1"
        async with self.use() as connection:
            bundles = await connection.fetchval(query, str(namespace))
        return NamespacePolicies(bundles) if bundles is not None else None

    async def next_instance(self) -> int:
        """Return the number of earlier calls of this method, by any broker."""
        query = (
            "INSERT INTO floodgate.marks AS mark VALUES ('instances', 1)"
            " ON CONFLICT (name) DO UPDATE SET value = mark.value + 1 RETURNING value"
        )
        async with self.use() as connection:
            return int(await connection.fetchval(query)) - 1

    async def delete_policies(self, names: Sequence[str]) -> None:
        """Delete all message policies of the given namespaces and topics."""
        async with self.use() as connection:
            await delete_policies(connection, names, self._name)

    def on_policies(self, callback: Callable[[str], None]) -> None:
        """Register a callback, called when other brokers changed policies or may have.

        After a lost connection, changes may have been missed: the callback then gets "".
        """
        self._policy_callbacks.append(callback)

    def _policies_changed(self, payload: str) -> None:
        sender, _, name = payload.partition(" ")
        if sender != self._name:
            for callback in self._policy_callbacks:
                callback(name)

    def on_configuration(self, callback: Callable[[], None]) -> None:
        """Register a callback, called when other brokers changed the configuration or may have.

        After a lost connection, changes may have been missed: the callback is called, too.
        """
        self._configuration_callbacks.append(callback)

    def _configured(self, sender: str) -> None:
        if sender != self._name:
            for callback in self._configuration_callbacks:
                callback()


async def insert_tenant(connection: Connection, name: str) -> None:
    """Insert a tenant without roles and clusters, unless it exists."""
    query = "INSERT INTO floodgate.tenants VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
    await connection.execute(query, name.encode(), *TenantInfo().as_json())


async def delete_policies(connection: Connection, names: Sequence[str], sender: str) -> None:
    """Delete all message policies of the given names, and notify other brokers."""
    async with connection.transaction():
        query = "DELETE FROM floodgate.message_policies WHERE name = ANY($1::bytea[])"
        status = await connection.execute(query, [name.encode() for name in names])
        if changed_rows(status):
            await _notify(connection, sender, POLICIES_CHANNEL, names[0] if len(names) == 1 else "")


async def _notify(connection: Connection, sender: str, channel: str, name: str | None) -> None:
    payload = sender
    if name is not None:
        told = name if len(name) <= MAX_NOTIFIED_CHARACTERS and "\0" not in name else ""
        payload = f"{sender} {told}"
    await connection.execute("SELECT pg_notify($1, $2)", channel, payload)


async def delete_all_schemas(connection: Connection, namespaces: Sequence[str]) -> None:
    """Delete the schemas of namespaces' topics, within the caller's transaction."""
    query = "DELETE FROM floodgate.schemas WHERE namespace = ANY($1::text[])"
    await connection.execute(query, namespaces)


def _as_text(value: bytes | str) -> str:
    return value if isinstance(value, str) else value.decode()


def changed_rows(status: str) -> int:
    """Return the number of changed rows in a statement's status, such as ``DELETE 3``."""
    return int(status.rpartition(" ")[2])
