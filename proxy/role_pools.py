"""Connections to brokers for authenticated clients: a pool a role, shared by the role's clients.

A connection names its client once, in CONNECT.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from client.connection.pool import ConnectionPool
from limiter.tasks import BackgroundTasks
from proxy.brokers import BrokerConnections, ServiceAddresses

if TYPE_CHECKING:
    from client.connection.connect_options import ConnectOptions
    from limiter.clock import Clock
    from proxy.credentials import OriginalClient


@dataclass(slots=True)
class _Shared:
    pool: ConnectionPool
    clients: int = 0


class RolePools:
    """The pools of all roles with clients.

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
        """Return the number of roles sharing a pool."""
        return len(self._of_role)

    def connections_for(self, client: OriginalClient) -> BrokerConnections:
        """Return the connections of one more client, released when the client leaves."""
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
        """Remove a client of a role; the last client closes the pool."""
        found = self._of_role[role]
        found.clients -= 1
        if not found.clients:
            del self._of_role[role]
            self._closing.start(found.pool.close())

    async def close(self) -> None:
        """Close every pool."""
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
    """One client's share of the connections of its role."""

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
        """See BrokerConnections."""
        self._pools.leave(self._role)
