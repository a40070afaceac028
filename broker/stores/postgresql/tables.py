"""Tables of a PostgreSQL store beside topics: tenants, policies, configuration, imports, schemas.

Deleting a tenant takes an exclusive lock of the row ``first_version`` of ``marks``, of which the
creation of a namespace takes a shared lock: no namespace enters a tenant under deletion.
"""

from __future__ import annotations

import json
import uuid
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from broker.stores.changes import NamespaceNotEmptyError
from broker.stores.store import NamespacePolicies, StoredSchema, TenantInfo, schema_key
from proto.names import NamespaceName
from server.tasks.cooperative import in_turns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from broker.stores.postgresql.connections import Connection

FIRST_VERSION = "SELECT value FROM floodgate.marks WHERE name = 'first_version'"
POLICIES_CHANNEL = "floodgate_policies"
MAX_NOTIFIED_CHARACTERS = 1_000
"""Longest name in a notification: PostgreSQL takes 8,000 bytes; "" stands for any name."""


class PostgresqlTables(ABC):
    """The part of a store beside topics. See MetadataStore."""

    def __init__(self) -> None:
        self._name = uuid.uuid4().hex
        self._configuration_callbacks: list[Callable[[], None]] = []
        self._policy_callbacks: list[Callable[[str], None]] = []

    @abstractmethod
    def use(self) -> AbstractAsyncContextManager[Connection]:
        """Hold a connection; fail immediately if the database is known to be unreachable."""

    # -- tenants and namespaces ---------------------------------------------------------------

    async def tenants(self) -> Mapping[str, TenantInfo]:
        """Return the tenants by name, in order."""
        query = "SELECT name, roles, clusters FROM floodgate.tenants ORDER BY name"
        found: dict[str, TenantInfo] = {}
        async with self.use() as connection:
            async for name, roles, clusters in in_turns(await connection.fetch(query)):
                found[name.decode()] = TenantInfo.of_json(roles, clusters)
        return found

    async def tenant(self, name: str) -> TenantInfo | None:
        """Return a tenant; None if missing."""
        query = "SELECT roles, clusters FROM floodgate.tenants WHERE name = $1"
        async with self.use() as connection:
            row = await connection.fetchrow(query, name.encode())
        return TenantInfo.of_json(*row) if row is not None else None

    async def create_tenant(self, name: str, info: TenantInfo) -> bool:
        """Create a tenant; false if present."""
        async with self.use() as connection:
            return await insert_tenant(connection, name, info)

    async def change_tenant(self, name: str, info: TenantInfo) -> bool:
        """Replace a tenant's values; false if missing."""
        query = "UPDATE floodgate.tenants SET roles = $2, clusters = $3 WHERE name = $1"
        async with self.use() as connection:
            return changed_some(await connection.execute(query, name.encode(), *info.as_json()))

    async def delete_tenant(self, name: str) -> bool:
        """Delete a tenant without namespaces; false if missing."""
        async with self.use() as connection, connection.transaction():
            await connection.execute(f"{FIRST_VERSION} FOR UPDATE")
            inside = "SELECT 1 FROM floodgate.namespaces WHERE tenant = $1 LIMIT 1"
            if await connection.fetchval(inside, name.encode()):
                raise NamespaceNotEmptyError
            query = "DELETE FROM floodgate.tenants WHERE name = $1"
            return changed_some(await connection.execute(query, name.encode()))

    async def namespaces(self, tenant: str | None = None) -> Sequence[NamespaceName]:
        """Return all namespaces, or the namespaces of a tenant, in order."""
        query, values = "SELECT name FROM floodgate.namespaces", tuple[bytes, ...]()
        if tenant is not None:
            query, values = f"{query} WHERE tenant = $1", (tenant.encode(),)
        async with self.use() as connection:
            rows = in_turns(await connection.fetch(f"{query} ORDER BY name", *values))
            return [NamespaceName.parse(row[0]) async for row in rows]

    async def policies(self, namespace: NamespaceName) -> NamespacePolicies | None:
        """Return a namespace's policies; None if missing."""
        query = "SELECT bundles FROM floodgate.namespaces WHERE name = $1"
        async with self.use() as connection:
            bundles = await connection.fetchval(query, str(namespace))
        return NamespacePolicies(bundles) if bundles is not None else None

    # -- imports and starts -------------------------------------------------------------------

    async def has_imported(self, fingerprint: str) -> bool:
        """Tell whether a file with this content was imported completely, by any broker."""
        query = "SELECT EXISTS (SELECT 1 FROM floodgate.marks WHERE name = $1)"
        async with self.use() as connection:
            return bool(await connection.fetchval(query, f"import {fingerprint}"))

    async def remember_import(self, fingerprint: str) -> None:
        """Record the complete import of a file with this content."""
        query = "INSERT INTO floodgate.marks VALUES ($1, 1) ON CONFLICT DO NOTHING"
        async with self.use() as connection:
            await connection.execute(query, f"import {fingerprint}")

    async def next_instance(self) -> int:
        """Return the number of earlier calls by all brokers."""
        query = (
            "INSERT INTO floodgate.marks AS mark VALUES ('instances', 1)"
            " ON CONFLICT (name) DO UPDATE SET value = mark.value + 1 RETURNING value"
        )
        async with self.use() as connection:
            return int(await connection.fetchval(query)) - 1

    # -- policies about messages --------------------------------------------------------------

    async def policy_documents(self, name: str | None = None) -> dict[str, dict[str, object]]:
        """Return the policies of all namespaces and topics, or of one name."""
        query, values = "SELECT name, key, value FROM floodgate.message_policies", list[bytes]()
        if name is not None:
            query, values = f"{query} WHERE name = $1", [name.encode()]
        found: dict[str, dict[str, object]] = {}
        async with self.use() as connection:
            for of, key, value in await connection.fetch(query, *values):
                found.setdefault(of.decode(), {})[key] = json.loads(value)
        return found

    async def set_policy(self, name: str, key: str, value: object | None) -> None:
        """Set one policy; None removes the policy."""
        async with self.use() as connection:
            await write_policy(connection, name, key, value, self._name)

    async def delete_policies(self, names: Sequence[str]) -> None:
        """Delete all policies of some namespaces and topics."""
        async with self.use() as connection:
            await delete_policies(connection, names, self._name)

    def on_policies(self, callback: Callable[[str], None]) -> None:
        """Register a callback for policy changes, certain or possible, by other brokers."""
        self._policy_callbacks.append(callback)

    def _policies_changed(self, payload: str) -> None:
        sender, _, name = payload.partition(" ")
        if sender != self._name:
            for callback in self._policy_callbacks:
                callback(name)

    # -- schemas ------------------------------------------------------------------------------

    async def schemas_of(self, topic: str) -> Sequence[StoredSchema]:
        """Return all versions of a topic, in order."""
        query = (
            "SELECT version, kind, data, properties, stored_at, deleted FROM floodgate.schemas"
            " WHERE namespace = $1 AND topic = $2 ORDER BY version"
        )
        async with self.use() as connection:
            return [
                StoredSchema.of_row(*row)
                for row in await connection.fetch(query, *_schema_key(topic))
            ]

    async def add_schema(self, topic: str, schema: StoredSchema) -> bool:
        """Add a version; false if present."""
        query = (
            "INSERT INTO floodgate.schemas VALUES"
            " ($1, $2, $3, $4, $5, convert_to($6, 'UTF8'), $7, $8) ON CONFLICT DO NOTHING"
        )
        async with self.use() as connection:
            return changed_some(
                await connection.execute(query, *_schema_key(topic), *schema.as_row())
            )

    async def delete_schemas(self, topic: str) -> None:
        """Delete all versions of a topic."""
        query = "DELETE FROM floodgate.schemas WHERE namespace = $1 AND topic = $2"
        async with self.use() as connection:
            await connection.execute(query, *_schema_key(topic))

    # -- dynamic configuration ----------------------------------------------------------------

    async def configuration(self) -> Mapping[str, str]:
        """Return the values set at run time, by key."""
        query = "SELECT key, value FROM floodgate.configuration ORDER BY key"
        async with self.use() as connection:
            return {row[0].decode(): row[1].decode() for row in await connection.fetch(query)}

    async def set_configuration(self, key: str, value: str | None) -> None:
        """Set a run-time value, None removes the key, and notify other brokers."""
        query, values = "DELETE FROM floodgate.configuration WHERE key = $1", [key.encode()]
        if value is not None:
            values.append(value.encode())
            query = (
                "INSERT INTO floodgate.configuration VALUES ($1, $2)"
                " ON CONFLICT (key) DO UPDATE SET value = excluded.value"
            )
        async with self.use() as connection, connection.transaction():
            await connection.execute(query, *values)
            await connection.execute("SELECT pg_notify('floodgate_configuration', $1)", self._name)

    def on_configuration(self, callback: Callable[[], None]) -> None:
        """Register a callback for configuration changes, certain or possible, by other brokers."""
        self._configuration_callbacks.append(callback)

    def _configured(self, sender: str) -> None:
        if sender != self._name:
            for callback in self._configuration_callbacks:
                callback()


async def insert_tenant(connection: Connection, name: str, info: TenantInfo) -> bool:
    """Add a tenant; false if present."""
    query = "INSERT INTO floodgate.tenants VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
    return changed_some(await connection.execute(query, name.encode(), *info.as_json()))


async def write_policy(
    connection: Connection, name: str, key: str, value: object | None, sender: str
) -> None:
    """Set or remove a policy, and notify other brokers."""
    query = "DELETE FROM floodgate.message_policies WHERE name = $1 AND key = $2"
    values: list[object] = [name.encode(), key]
    if value is not None:
        values.append(json.dumps(value))
        query = (
            "INSERT INTO floodgate.message_policies VALUES ($1, $2, $3)"
            " ON CONFLICT (name, key) DO UPDATE SET value = excluded.value"
        )
    async with connection.transaction():
        await connection.execute(query, *values)
        await _notify(connection, sender, name)


async def delete_policies(connection: Connection, names: Sequence[str], sender: str) -> None:
    """Delete all policies of some names, and notify other brokers."""
    async with connection.transaction():
        query = "DELETE FROM floodgate.message_policies WHERE name = ANY($1::bytea[])"
        await connection.execute(query, [name.encode() for name in names])
        await _notify(connection, sender, names[0] if len(names) == 1 else "")


async def _notify(connection: Connection, sender: str, name: str) -> None:
    told = name if len(name) <= MAX_NOTIFIED_CHARACTERS and "\0" not in name else ""
    await connection.execute("SELECT pg_notify($1, $2)", POLICIES_CHANNEL, f"{sender} {told}")


def changed_some(status: str) -> bool:
    """Tell whether a command changed a row; a status ends with the row count."""
    return not status.endswith(" 0")


async def delete_all_schemas(connection: Connection, namespaces: Sequence[str]) -> None:
    """Delete the schemas of namespaces, within the caller's transaction."""
    query = "DELETE FROM floodgate.schemas WHERE namespace = ANY($1::text[])"
    await connection.execute(query, namespaces)


def _schema_key(topic: str) -> tuple[str, bytes]:
    namespace, name = schema_key(topic)
    return namespace, name.encode()
