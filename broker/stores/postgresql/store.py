"""The store ``postgresql://...``: a database of topics that several brokers can share.

The database is authoritative, and its index selects topics by properties. shared_namespaces.py
follows the changes of other brokers.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from broker.stores.cached_store import CachedStore
from broker.stores.changes import StoreError, TopicChanges
from broker.stores.database_tables import CONFIGURATION_CHANNEL, POLICIES_CHANNEL
from broker.stores.name_locks import to_its_end
from broker.stores.postgresql.connections import PostgresqlConnections
from broker.stores.postgresql.listener import NotificationListener
from broker.stores.postgresql.reading import read_properties, read_version, select_names
from broker.stores.postgresql.schema import UnknownSchemaError, make_tables
from broker.stores.postgresql.shared_namespaces import SharedNamespaces
from broker.stores.postgresql.tables import PostgresqlTables
from broker.stores.store import (
    DEFAULT_POLICIES,
    NO_DOCUMENT,
    NamespacePolicies,
    NamespaceSnapshot,
)
from limiter.clock import Clock, LoopClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from broker.stores.changes import NamespaceChanges
    from broker.stores.postgresql.connections import Connection
    from proto.names import NamespaceName


class PostgresqlStore(CachedStore, PostgresqlTables):
    """A store of topics in a PostgreSQL database that several brokers may share. See MetadataStore.

    While the database is unreachable, cached snapshots are still served, however old; all other
    requests fail immediately.

    Args:
        url: ``postgresql://user:password@host:port/database``, or another form accepted by libpq.
        cache_bytes: Limit for cached snapshots in bytes; the least recently used is evicted first.
        clock: For timeouts and delays; None for the event loop's.
    """

    def __init__(self, url: str, cache_bytes: int, clock: Clock | None = None) -> None:
        CachedStore.__init__(self, cache_bytes)
        PostgresqlTables.__init__(self)
        clock = clock or LoopClock()
        self._connections = PostgresqlConnections(url, clock)
        self._namespaces = SharedNamespaces(self.use, self._feeds, self._cache, clock)
        self._listener = NotificationListener(
            self._connections.connect,
            {
                "floodgate_topics": self._namespaces.notified,
                CONFIGURATION_CHANNEL: self._configured,
                POLICIES_CHANNEL: self._policies_changed,
            },
            self._reconnected,
            clock,
        )

    def __repr__(self) -> str:
        shown = self._connections.shown_url
        return f"<PostgresqlStore {shown}, {len(self._cache)} namespaces cached>"

    @property
    def connected(self) -> bool:
        """True while the database connection that receives notifications is open."""
        return self._listener.connected

    async def connect(self) -> Connection:
        """Open a separate database connection that does not belong to the pool.

        Raises:
            StoreError: The database is unreachable.
        """
        return await self._connections.connect()

    async def open(self) -> None:
        """Connect to the database, and create the tables that it does not have.

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
        """Close the feeds of all readers and the database connections."""
        self._feeds.close()
        await self._listener.close()
        await self._namespaces.close()
        await self._connections.close()

    @asynccontextmanager
    async def use(self) -> AsyncIterator[Connection]:
        """Hold a connection; raise an error at once while the database is unreachable."""
        if not self._listener.connected:
            self._connections.refuse()
        async with self._connections.use() as connection:
            yield connection

    # -- tenants and namespaces ---------------------------------------------------------------

    async def create_namespace(
        self,
        namespace: NamespaceName,
        policies: NamespacePolicies = DEFAULT_POLICIES,
        document: Mapping[str, object] = NO_DOCUMENT,
    ) -> bool:
        """Create an empty namespace; return False if it already exists.

        A missing tenant is created.
        """
        return await to_its_end(self._namespaces.create(namespace, policies, document, self._name))

    async def delete_namespace(self, namespace: NamespaceName) -> bool:
        """Delete a namespace that has no user topics; return False if it does not exist."""
        return await to_its_end(self._namespaces.delete(namespace))

    async def delete_all(
        self, namespaces: Sequence[NamespaceName]
    ) -> Mapping[NamespaceName, NamespaceSnapshot]:
        """Delete namespaces with all their topics, many of them in one transaction."""
        return await to_its_end(self._namespaces.delete_all(namespaces))

    # -- topics -------------------------------------------------------------------------------

    async def snapshot(self, namespace: NamespaceName) -> NamespaceSnapshot | None:
        """Return a namespace's newest snapshot known to this broker; None if it does not exist."""
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
        """Return a topic's or partitioned topic's properties; empty if it has none."""
        async with self.use() as connection:
            return await read_properties(connection, str(namespace), name)

    async def apply(self, namespace: NamespaceName, changes: TopicChanges) -> int:
        """Commit a change of a namespace, then publish it to readers of the feeds."""
        return await to_its_end(self._namespaces.apply(namespace, changes))

    async def apply_all(self, changes: Sequence[NamespaceChanges]) -> None:
        """Apply changes of several namespaces; those of new namespaces share one commit."""
        await to_its_end(self._namespaces.apply_all(changes))

    def _reconnected(self) -> None:
        self._namespaces.reconnected()
        self._configured("somebody, perhaps")
        self._policies_changed("somebody")


def _remedy(error: StoreError) -> str:
    """Return advice for an error that prevents the start; empty if the error needs none."""
    if "permission denied" in str(error):
        return "; the role has to make tables: GRANT CREATE ON DATABASE, or an owner's role"
    return ""
