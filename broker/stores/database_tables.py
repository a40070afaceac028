"""Access to the database tables of tenants, imports, policies, schemas and configuration.

The statements are the same in SQLite and PostgreSQL: ``{}`` stands for the schema of the tables,
``$1``, ``$2`` and so on, in order, for the values. A store runs them.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, TypeVar

from broker.stores.store import StoredSchema, TenantInfo, schema_key
from proto.names import NamespaceName, TopicName

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

CONFIGURATION_CHANNEL, POLICIES_CHANNEL = "floodgate_configuration", "floodgate_policies"

T = TypeVar("T")


class DatabaseTables(ABC):
    """Methods of database stores for tenants, policies, schemas and the like. See MetadataStore."""

    @abstractmethod
    async def _texts(self, make: Callable[..., T], query: str, *values: object) -> list[T]:
        """Call ``make`` with the texts of each row that a query finds; return the results.

        A value of another type is an error.
        """

    @abstractmethod
    async def _rows(self, query: str, *values: object) -> Sequence[Sequence[Any]]:
        """Run a query and return its rows."""

    @abstractmethod
    async def _change(
        self, query: str, *values: object, tells: tuple[str, str | None] | None = None
    ) -> int:
        """Run a statement that changes rows; return the number of changed rows.

        Args:
            query: The statement.
            *values: The statement's values.
            tells: The channel on which other processes are notified, and what changed.
        """

    @staticmethod
    @abstractmethod
    def _stored(text: str) -> str | bytes:
        """Return a text, with any characters, as a value of the type that the database stores."""

    # -- tenants and imports ------------------------------------------------------------------

    async def tenants(self) -> Mapping[str, TenantInfo]:
        """Return all tenants in a dict by name, sorted by name."""
        query = "SELECT name, roles, clusters FROM {}tenants ORDER BY name"
        return dict(await self._texts(_named_tenant, query))

    async def tenant(self, name: str) -> TenantInfo | None:
        """Return a tenant; None if the tenant does not exist."""
        query = "SELECT roles, clusters FROM {}tenants WHERE name = $1"
        found = await self._texts(TenantInfo.of_json, query, self._stored(name))
        return found[0] if found else None

    async def create_tenant(self, name: str, info: TenantInfo) -> bool:
        """Create a tenant; return False if it already exists."""
        query = "INSERT INTO {}tenants VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
        return await self._change(query, self._stored(name), *info.as_json()) > 0

    async def change_tenant(self, name: str, info: TenantInfo) -> bool:
        """Replace a tenant's roles and clusters; return False if there is no such tenant."""
        query = "UPDATE {}tenants SET roles = $1, clusters = $2 WHERE name = $3"
        return await self._change(query, *info.as_json(), self._stored(name)) > 0

    async def has_imported(self, fingerprint: str) -> bool:
        """Return True if a file with this content hash was imported completely."""
        query = "SELECT 1 FROM {}marks WHERE name = $1"
        return bool(await self._rows(query, f"import {fingerprint}"))

    async def remember_import(self, fingerprint: str) -> None:
        """Record that a file with this content hash was imported completely."""
        query = "INSERT INTO {}marks VALUES ($1, 1) ON CONFLICT DO NOTHING"
        await self._change(query, f"import {fingerprint}")

    # -- policies about messages --------------------------------------------------------------

    async def policy_documents(self, name: str | None = None) -> dict[str, dict[str, object]]:
        """Return the message policies of all namespaces and topics, or of one of them."""
        query, names = "SELECT name, key, value FROM {}message_policies", list[str | bytes]()
        if name is not None:
            query, names = f"{query} WHERE name = $1", [self._stored(name)]
        found: dict[str, dict[str, object]] = {}
        for of, key, value in await self._texts(_policy, query, *names):
            found.setdefault(of, {})[key] = value
        return found

    async def set_policy(
        self, name: str, key: str, value: object | None, before: object | None = None
    ) -> bool:
        """Replace one stored policy; return False if its value is not ``before`` any more."""
        of, new, old = (self._stored(name), key), json.dumps(value), json.dumps(before)
        query = "INSERT INTO {}message_policies VALUES ($1, $2, $3)"
        values: tuple[object, ...] = (*of, new)
        if before is None:
            query += " ON CONFLICT DO NOTHING"
        elif value is None:
            query = "DELETE FROM {}message_policies WHERE name = $1 AND key = $2 AND value = $3"
            values = (*of, old)
        else:
            query = (
                "UPDATE {}message_policies SET value = $1"
                " WHERE name = $2 AND key = $3 AND value = $4"
            )
            values = (new, *of, old)
        return await self._change(query, *values, tells=(POLICIES_CHANNEL, name)) > 0

    # -- schemas ------------------------------------------------------------------------------

    async def schemas_of(self, topic: str) -> Sequence[StoredSchema]:
        """Return all versions of a topic's schema, the oldest first."""
        query = (
            "SELECT version, kind, data, properties, stored_at, deleted FROM {}schemas"
            " WHERE namespace = $1 AND topic = $2 ORDER BY version"
        )
        return [StoredSchema.of_row(*row) for row in await self._rows(query, *self._key_of(topic))]

    async def add_schema(self, topic: str, schema: StoredSchema) -> bool:
        """Add a schema version to a topic; return False if that version exists."""
        query = (
            "INSERT INTO {}schemas VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING"
        )
        version, kind, data, properties, *rest = schema.as_row()
        values = (version, kind, data, self._stored(properties), *rest)
        return await self._change(query, *self._key_of(topic), *values) > 0

    async def delete_schemas(self, topic: str) -> None:
        """Delete all versions of a topic's schema."""
        query = "DELETE FROM {}schemas WHERE namespace = $1 AND topic = $2"
        await self._change(query, *self._key_of(topic))

    def _key_of(self, topic: str) -> tuple[str, str | bytes]:
        namespace, name = schema_key(topic)
        return namespace, self._stored(name)

    # -- dynamic configuration ----------------------------------------------------------------

    async def configuration(self) -> Mapping[str, str]:
        """Return the dynamic configuration: the values set at run time, by key."""
        query = "SELECT key, value FROM {}configuration ORDER BY key"
        return dict(await self._texts(lambda key, value: (key, value), query))

    async def set_configuration(self, key: str, value: str | None) -> None:
        """Set a value of the dynamic configuration; None removes the key."""
        query, values = "DELETE FROM {}configuration WHERE key = $1", [self._stored(key)]
        if value is not None:
            values.append(self._stored(value))
            query = (
                "INSERT INTO {}configuration VALUES ($1, $2)"
                " ON CONFLICT (key) DO UPDATE SET value = excluded.value"
            )
        await self._change(query, *values, tells=(CONFIGURATION_CHANNEL, None))


def _named_tenant(name: str, roles: str, clusters: str) -> tuple[str, TenantInfo]:
    return name, TenantInfo.of_json(roles, clusters)


def _policy(name: str, key: str, value: str) -> tuple[str, str, object]:
    """Parse a row of the policies table; return its namespace or topic, key and value.

    Raises:
        ValueError: The name or value is invalid.
    """
    TopicName.parse(name) if "://" in name else NamespaceName.parse(name)
    return name, key, json.loads(value)
