"""The store of ``postgresql://...``: one database shared by several brokers.

The database is authoritative, and its index selects topics by properties. shared_namespaces.py
follows the changes of other brokers.
"""

from __future__ import annotations

import uuid
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

from broker.stores.cached_store import CachedStore
from broker.stores.changes import StoreError, TopicChanges
from broker.stores.name_locks import to_its_end
from broker.stores.postgresql import namespaces as rows
from broker.stores.postgresql import policies as policy_rows
from broker.stores.postgresql.connections import PostgresqlConnections
from broker.stores.postgresql.listener import NotificationListener
from broker.stores.postgresql.reading import read_properties, read_version, select_names
from broker.stores.postgresql.schema import UnknownSchemaError, make_tables
from broker.stores.postgresql.shared_namespaces import SharedNamespaces
from broker.stores.postgresql.topic_schemas import PostgresqlTopicSchemas
from broker.stores.store import (
    DEFAULT_POLICIES,
    NO_DOCUMENT,
    NamespacePolicies,
    NamespaceSnapshot,
    TenantInfo,
)
from limiter.clock import Clock, LoopClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from broker.stores.changes import NamespaceChanges
    from broker.stores.postgresql.driver import Connection
    from proto.names import NamespaceName

T = TypeVar("T")


class PostgresqlStore(CachedStore):
    """Topics in a PostgreSQL database, possibly shared by several brokers. See MetadataStore.

    While the database is unreachable, cached snapshots are still served, however old; all other
    requests fail immediately.

    Args:
        url: ``postgresql://user:password@host:port/database``, or another form accepted by libpq.
        cache_bytes: Limit for cached snapshots in bytes; the least recently used is evicted first.
        clock: For timeouts and delays; None for the event loop's.
    """

    def __init__(self, url: str, cache_bytes: int, clock: Clock | None = None) -> None:
        super().__init__(cache_bytes)
        clock = clock or LoopClock()
        self._connections = PostgresqlConnections(url, clock)
        self._namespaces = SharedNamespaces(self.use, self._feeds, self._cache, clock)
        self._listener = NotificationListener(
            self._connections.connect,
            {
                "floodgate_topics": self._namespaces.notified,
                "floodgate_configuration": self._configured,
                policy_rows.CHANNEL: self._policies_changed,
            },
            self._reconnected,
            clock,
        )
        self._configuration_callbacks: list[Callable[[], None]] = []
        self._policy_callbacks: list[Callable[[str], None]] = []
        self._name = uuid.uuid4().hex
        self.schemas = PostgresqlTopicSchemas(self.use)

    def __repr__(self) -> str:
        shown = self._connections.shown_url
        return f"<PostgresqlStore {shown}, {len(self._cache)} namespaces cached>"

    @property
    def connected(self) -> bool:
        """True while the database is believed reachable."""
        return self._listener.connected

    async def connect(self) -> Connection:
        """Return a separate connection, outside the pool.

        Raises:
            StoreError: The database is unreachable.
        """
        return await self._connections.connect()

    async def open(self) -> None:
        """Connect, and create missing tables.

        Raises:
            StoreError: The database is unreachable, or holds tables of another version.
        """
        await self._connections.open()
        try:
            async with self._connections.use() as connection:
                await make_tables(connection)
                await self._namespaces.opened(connection)
            await self._listener.open()
        except StoreError as error:
            await self._connections.close()
            raise StoreError(f"{error}{_remedy(error)}") from None
        except UnknownSchemaError as error:
            await self._connections.close()
            raise StoreError(self._connections.sentence("cannot be opened", error)) from None

    async def close(self) -> None:
        """End every feed, and close the connections."""
        self._feeds.close()
        await self._listener.close()
        await self._namespaces.close()
        await self._connections.close()

    @asynccontextmanager
    async def use(self) -> AsyncIterator[Connection]:
        """Hold a connection; fail immediately if the database is known to be unreachable."""
        if not self._listener.connected:
            self._connections.refuse()
        async with self._connections.use() as connection:
            yield connection

    # -- tenants and namespaces ---------------------------------------------------------------

    async def tenants(self) -> Mapping[str, TenantInfo]:
        """Return the tenants by name, in order."""
        async with self.use() as connection:
            return await rows.read_tenants(connection)

    async def tenant(self, name: str) -> TenantInfo | None:
        """Return a tenant; None if missing."""
        async with self.use() as connection:
            return await rows.read_tenant(connection, name)

    async def create_tenant(self, name: str, info: TenantInfo) -> bool:
        """Create a tenant; false if present."""
        async with self.use() as connection:
            return await rows.insert_tenant(connection, name, info)

    async def change_tenant(self, name: str, info: TenantInfo) -> bool:
        """Replace a tenant's values; false if missing."""
        async with self.use() as connection:
            return await rows.update_tenant(connection, name, info)

    async def delete_tenant(self, name: str) -> bool:
        """Delete a tenant without namespaces; false if missing."""
        async with self.use() as connection:
            return await rows.delete_tenant(connection, name)

    async def namespaces(self, tenant: str | None = None) -> Sequence[NamespaceName]:
        """Return all namespaces, or the namespaces of a tenant, in order."""
        async with self.use() as connection:
            return await rows.read_namespaces(connection, tenant)

    async def create_namespace(
        self,
        namespace: NamespaceName,
        policies: NamespacePolicies = DEFAULT_POLICIES,
        document: Mapping[str, object] = NO_DOCUMENT,
    ) -> bool:
        """Create an empty namespace, and a missing tenant; false if the namespace exists."""
        return await to_its_end(self._namespaces.create(namespace, policies, document, self._name))

    async def policies(self, namespace: NamespaceName) -> NamespacePolicies | None:
        """Return a namespace's policies; None if missing."""
        async with self.use() as connection:
            return await rows.read_policies(connection, str(namespace))

    async def delete_namespace(self, namespace: NamespaceName) -> bool:
        """Delete a namespace without user topics; false if missing."""
        return await to_its_end(self._namespaces.delete(namespace))

    async def delete_all(
        self, namespaces: Sequence[NamespaceName]
    ) -> Mapping[NamespaceName, NamespaceSnapshot]:
        """Delete namespaces with all their topics, many in one transaction."""
        return await to_its_end(self._namespaces.delete_all(namespaces))

    # -- topics -------------------------------------------------------------------------------

    async def snapshot(self, namespace: NamespaceName) -> NamespaceSnapshot | None:
        """Return the newest version this broker was notified of; None for a missing namespace."""
        return await self._namespaces.snapshot(namespace)

    async def _version(self, namespace: NamespaceName) -> int:
        async with self.use() as connection:
            known = await read_version(connection, str(namespace))
        return known.version if known is not None else 0

    async def _names_with(
        self, namespace: NamespaceName, properties: Mapping[str, str]
    ) -> list[bytes]:
        async with self.use() as connection:
            return await select_names(connection, str(namespace), properties)

    async def properties(self, namespace: NamespaceName, name: str) -> Mapping[str, str]:
        """Return the properties of a topic or partitioned topic; empty without any."""
        async with self.use() as connection:
            return await read_properties(connection, str(namespace), name)

    async def apply(self, namespace: NamespaceName, changes: TopicChanges) -> int:
        """Commit changes, then publish: an acknowledged change survives the process."""
        return await to_its_end(self._namespaces.apply(namespace, changes))

    async def apply_all(self, changes: Sequence[NamespaceChanges]) -> None:
        """Apply changes of several namespaces; changes of new namespaces are committed together."""
        await to_its_end(self._namespaces.apply_all(changes))

    async def has_imported(self, fingerprint: str) -> bool:
        """Tell whether a file with this content was imported completely, by any broker."""
        async with self.use() as connection:
            return await rows.has_imported(connection, fingerprint)

    async def remember_import(self, fingerprint: str) -> None:
        """Record the complete import of a file with this content."""
        async with self.use() as connection:
            await rows.remember_import(connection, fingerprint)

    # -- policies about messages --------------------------------------------------------------

    async def policy_documents(self, name: str | None = None) -> dict[str, dict[str, object]]:
        """Return the policies of all namespaces and topics, or of one name."""
        async with self.use() as connection:
            return await policy_rows.read_policies(connection, name)

    async def set_policy(self, name: str, key: str, value: object | None) -> None:
        """Set one policy; None removes the policy."""
        async with self.use() as connection:
            await policy_rows.write_policy(connection, name, key, value, self._name)

    async def delete_policies(self, names: Sequence[str]) -> None:
        """Delete all policies of some namespaces and topics."""
        async with self.use() as connection:
            await policy_rows.delete_policies(connection, names, self._name)

    def on_policies(self, callback: Callable[[str], None]) -> None:
        """Register a callback for policy changes, certain or possible, by other brokers."""
        self._policy_callbacks.append(callback)

    def _policies_changed(self, payload: str) -> None:
        sender, _, name = payload.partition(" ")
        if sender != self._name:
            for callback in self._policy_callbacks:
                callback(name)

    async def next_instance(self) -> int:
        """Return the number of earlier calls by all brokers."""
        async with self.use() as connection:
            return await rows.next_instance(connection)

    # -- dynamic configuration ----------------------------------------------------------------

    async def configuration(self) -> Mapping[str, str]:
        """Return the values set at run time, by key."""
        async with self.use() as connection:
            return await rows.read_configuration(connection)

    async def set_configuration(self, key: str, value: str | None) -> None:
        """Set a run-time value; None removes the key."""
        async with self.use() as connection:
            await rows.write_configuration(connection, key, value, self._name)

    def on_configuration(self, callback: Callable[[], None]) -> None:
        """Register a callback for configuration changes, certain or possible, by other brokers."""
        self._configuration_callbacks.append(callback)

    def _configured(self, sender: str) -> None:
        if sender != self._name:
            for callback in self._configuration_callbacks:
                callback()

    def _reconnected(self) -> None:
        self._namespaces.reconnected()
        self._configured("somebody, perhaps")
        self._policies_changed("somebody")


def _remedy(error: StoreError) -> str:
    """Return the remedy for a failed start if the server names none."""
    if "permission denied" in str(error):
        return "; the role has to make tables: GRANT CREATE ON DATABASE, or an owner's role"
    return ""
