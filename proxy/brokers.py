"""Connections from the proxy to brokers: one for each client, or one shared by all.

In profile pulsar every client connection has its own, so that clients never share fate. The shared
kind stands behind validation of everything that makes a broker close a connection.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from client.connection.connect_options import KEEP_ALIVE_SECONDS, ConnectOptions
from client.exceptions import ConnectError
from proto.version import PROXY_VERSION

if TYPE_CHECKING:
    from collections.abc import Hashable

    from client.connection.authentication import Credentials
    from client.connection.cnx import ClientCnx
    from client.connection.pool import ConnectionPool
    from limiter.clock import Clock
    from server.tls.contexts import ClientTls

Address = tuple[str, int]
AVOIDED_SECONDS = 2.0
"""Seconds for which a broker that could not be reached is tried after the others."""
BROKER_TIMEOUT_SECONDS = 60.0
"""Seconds that a broker may take to answer: longer than both of its own permit timeouts."""


def connect_options(
    *,
    drain_oversized: bool,
    keep_alive_seconds: float = KEEP_ALIVE_SECONDS,
    answer_limit_bytes: int | None = None,
    tls: ClientTls | None = None,
    credentials: Credentials | None = None,
) -> ConnectOptions:
    """Return the options of the proxy's connections to brokers.

    Args:
        drain_oversized: Whether what exceeds the frame limit costs its request only.
        keep_alive_seconds: How often a broker is asked whether it lives.
        answer_limit_bytes: Largest frame that the proxy's clients take; see ConnectOptions.
        tls: Spoken to all brokers; None for plain connections.
        credentials: The proxy's own.
    """
    return ConnectOptions(
        client_version=PROXY_VERSION,
        proxy_version=PROXY_VERSION,
        operation_timeout_seconds=BROKER_TIMEOUT_SECONDS,
        drain_oversized=drain_oversized,
        keep_alive_seconds=keep_alive_seconds,
        answer_limit_bytes=answer_limit_bytes,
        tls=None if tls is None else tls.layer,
        credentials=credentials,
    )


class ServiceAddresses:
    """The brokers that the proxy is configured with: any of them answers a first question.

    Args:
        addresses: One or more; the first is asked as long as it can be reached.
        clock: Says when one that could not be reached is tried again.

    Attributes:
        first: The address by which connections are asked for.
    """

    def __init__(self, addresses: tuple[Address, ...], clock: Clock) -> None:
        self.first = addresses[0]
        self._addresses = addresses
        self._clock = clock
        self._avoided_until: dict[Address, float] = {}

    def in_order(self) -> list[Address]:
        """Return the addresses in the order in which they are to be tried."""
        now = self._clock.now()
        return sorted(self._addresses, key=lambda one: self._avoided_until.get(one, 0.0) > now)

    def unreachable(self, address: Address) -> None:
        """Ask the others first for a while."""
        self._avoided_until[address] = self._clock.now() + AVOIDED_SECONDS


class BrokerConnections:
    """One client's connections to brokers, from a pool.

    Args:
        pool: Opens them.
        service: The configured brokers; None where there is but one.
        own: Whether the pool is this client's alone, and ends with it.
        asks_for: The client as brokers are told of it: only what they answer to the same may be
            shared.
        tls: Whether the brokers are spoken to by TLS.

    Attributes:
        tls: As given.
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
        """Return a ready connection; for the first configured broker another may stand in.

        Raises:
            ConnectError: The broker cannot be reached.
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
        """Give up the connections: the client has left."""
        if self._own:
            self._closing = asyncio.get_running_loop().create_task(self._pool.close())
