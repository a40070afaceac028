"""Connections from the proxy to brokers: private to a client, or shared by all clients of a role.

In profile pulsar every client connection has private broker connections, isolating clients from
each other. Shared connections are used after validation of everything for which a broker closes a
connection.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from client.connection.connect_options import ConnectOptions
from client.connection.pool import ConnectionPool
from client.exceptions import ConnectError
from limiter.tasks import BackgroundTasks
from proto.version import PROXY_VERSION

if TYPE_CHECKING:
    from collections.abc import Hashable

    from client.connection.cnx import ClientCnx
    from limiter.clock import Clock
    from proxy.credentials import OriginalClient

Address = tuple[str, int]
AVOIDED_SECONDS = 2.0
"""Seconds during which an unreachable broker is tried last."""
BROKER_TIMEOUT_SECONDS = 60.0
"""Seconds a broker may take to answer: longer than both of its permit timeouts."""
PROXY_OPTIONS = ConnectOptions(
    client_version=PROXY_VERSION,
    proxy_version=PROXY_VERSION,
    operation_timeout_seconds=BROKER_TIMEOUT_SECONDS,
    drain_oversized=True,
)
"""The options, equal in all proxies, of a connection to a broker."""


class ServiceAddresses:
    """Addresses of the configured brokers, any of which can answer a client's first request.

    Args:
        addresses: One or more; the first is used while reachable.
        clock: Time source for retries of unreachable brokers.

    Attributes:
        first: The address under which connections to any of the brokers are requested.
    """

    def __init__(self, addresses: tuple[Address, ...], clock: Clock) -> None:
        self.first = addresses[0]
        self._addresses = addresses
        self._clock = clock
        self._avoided_until: dict[Address, float] = {}

    def in_order(self) -> list[Address]:
        """Return the brokers' addresses in the order in which to try them."""
        now = self._clock.now()
        return sorted(self._addresses, key=lambda one: self._avoided_until.get(one, 0.0) > now)

    def unreachable(self, address: Address) -> None:
        """Mark a broker's address as unreachable, so that it is tried last for a while."""
        self._avoided_until[address] = self._clock.now() + AVOIDED_SECONDS


class BrokerConnections:
    """Connections to brokers, taken from a pool, that the proxy uses for one client.

    Args:
        pool: Opens the connections.
        service: The configured brokers; None for a single broker.
        own: Whether the pool is private to the client, and is closed when it leaves.
        asks_for: The client's identity for brokers: answers are shared only between equal
            identities.
        tls: Whether broker connections use TLS.

    Attributes:
        tls: Whether broker connections use TLS.
    """

    def __init__(
        self,
        pool: ConnectionPool,
        service: ServiceAddresses | None = None,
        *,
        own: bool = False,
        asks_for: Hashable = None,
        tls: bool = False,
    ) -> None:
        self.asks_for = asks_for
        self.tls = tls
        self._pool = pool
        self._service = service
        self._own = own
        self._closing: asyncio.Task[None] | None = None

    async def get(self, address: Address) -> ClientCnx:
        """Return an open connection to the broker at ``address``.

        Any configured broker may stand in for the first.

        Raises:
            ConnectError: The broker is unreachable.
        """
        if self._service is None or address != self._service.first:
            return await self._pool.get(address, tls=self.tls)
        *tried_before, last = self._service.in_order()
        for one in tried_before:
            try:
                return await self._pool.get(one, tls=self.tls)
            except ConnectError:
                self._service.unreachable(one)
        return await self._pool.get(last, tls=self.tls)

    def release(self) -> None:
        """Release the connections after the client has left."""
        if self._own:
            self._closing = asyncio.get_running_loop().create_task(self._pool.close())


@dataclass(slots=True)
class _Shared:
    pool: ConnectionPool
    clients: int = 0


class RolePools:
    """Pools of broker connections: one pool for each role that has connected clients.

    A connection names its client once, in CONNECT.

    Bound: one pool for each role, closed with its last client.

    Args:
        options: Options of every connection, to which the client's identity is added.
        service: The configured brokers.
        clock: Time source.
        shared: Whether clients of one role share a pool; with forwarded credentials pools are
            always private.
    """

    def __init__(
        self, options: ConnectOptions, service: ServiceAddresses, clock: Clock, *, shared: bool
    ) -> None:
        self._options = options
        self._speaks_tls = options.tls is not None
        self._service = service
        self._clock = clock
        self._shared = shared
        self._of_role: dict[str, _Shared] = {}
        self._closing = BackgroundTasks()

    def __len__(self) -> int:
        """Return the number of roles that have a shared pool of broker connections."""
        return len(self._of_role)

    def connections_for(self, client: OriginalClient) -> BrokerConnections:
        """Return the connections to brokers that a new client uses until it leaves."""
        if not self._shared or client.credentials is not None:
            # Never shared: an answer could belong to another client.
            pool = self._pool(client)
            return BrokerConnections(
                pool, self._service, own=True, asks_for=object(), tls=self._speaks_tls
            )
        found = self._of_role.get(client.role)
        if found is None:
            found = self._of_role[client.role] = _Shared(self._pool(client))
        found.clients += 1
        return RoleConnections(self, client.role, found.pool, self._service, tls=self._speaks_tls)

    def leave(self, role: str) -> None:
        """Stop counting a client that has left; the last client of a role closes its pool."""
        found = self._of_role[role]
        found.clients -= 1
        if not found.clients:
            del self._of_role[role]
            self._closing.start(found.pool.close())

    async def close(self) -> None:
        """Close all pools and their connections to brokers."""
        for found in self._of_role.values():
            await found.pool.close()
        await self._closing.finished()

    def _pool(self, client: OriginalClient) -> ConnectionPool:
        options = replace(
            self._options,
            original_principal=client.role,
            original_credentials=client.credentials,
        )
        return ConnectionPool(options, self._clock)


class RoleConnections(BrokerConnections):
    """Connections to brokers that one client shares with all clients of its role."""

    def __init__(
        self,
        pools: RolePools,
        role: str,
        pool: ConnectionPool,
        service: ServiceAddresses,
        *,
        tls: bool,
    ) -> None:
        super().__init__(pool, service, asks_for=role, tls=tls)
        self._pools = pools
        self._role = role

    def release(self) -> None:
        """Give up the client's use of the shared connections, after it has left."""
        self._pools.leave(self._role)
