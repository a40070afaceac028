"""Connections from the proxy to brokers: one for each client, or one shared by all.

In profile pulsar every client connection has its own, so that clients never share fate. The shared
kind stands behind validation of everything that makes a broker close a connection.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from client.connect_options import KEEP_ALIVE_SECONDS, ConnectOptions
from proto.version import PROXY_VERSION

if TYPE_CHECKING:
    from client.cnx import ClientCnx
    from client.pool import ConnectionPool

Address = tuple[str, int]
BROKER_TIMEOUT_SECONDS = 60.0
"""Seconds that a broker may take to answer: longer than both of its own permit timeouts."""


def connect_options(
    *,
    drain_oversized: bool,
    keep_alive_seconds: float = KEEP_ALIVE_SECONDS,
    answer_limit_bytes: int | None = None,
) -> ConnectOptions:
    """Return the options of the proxy's connections to brokers.

    Args:
        drain_oversized: Whether what exceeds the frame limit costs its request only.
        keep_alive_seconds: How often a broker is asked whether it lives.
        answer_limit_bytes: Largest frame that the proxy's clients take; see ConnectOptions.
    """
    return ConnectOptions(
        client_version=PROXY_VERSION,
        proxy_version=PROXY_VERSION,
        operation_timeout_seconds=BROKER_TIMEOUT_SECONDS,
        drain_oversized=drain_oversized,
        keep_alive_seconds=keep_alive_seconds,
        answer_limit_bytes=answer_limit_bytes,
    )


class BrokerConnections:
    """One client's connections to brokers, from a pool.

    Args:
        pool: Opens them.
        own: Whether the pool is this client's alone, and ends with it.
    """

    def __init__(self, pool: ConnectionPool, *, own: bool = False) -> None:
        self._pool = pool
        self._own = own
        self._closing: asyncio.Task[None] | None = None

    async def get(self, address: Address) -> ClientCnx:
        """Return a ready connection.

        Raises:
            ConnectError: The broker cannot be reached.
        """
        return await self._pool.get(address)

    def release(self) -> None:
        """Give up the connections: the client has left."""
        if self._own:
            self._closing = asyncio.get_running_loop().create_task(self._pool.close())
