"""A pool of connections to servers, opened once and shared."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from client.cnx import ClientCnx
from client.errors import ClientClosedError, ConnectError
from limiter.clock import Clock, LoopClock, deadline

if TYPE_CHECKING:
    from client.connect_options import ConnectOptions

DEFAULT_PORT = 6650
CONNECT_TIMEOUT_SECONDS = 10.0
MAX_SERVERS = 1_000
"""Servers a pool keeps connections to."""


def server_address(url: str) -> tuple[str, int]:
    """Return host and port of a service URL, ``pulsar://host[:port]``.

    Raises:
        ConnectError: Another scheme, no host, a port that is no number, or more than these.
    """
    host, port = _host_and_port(url)
    if host is None:
        raise ConnectError(f"{url!r} is not a service URL; it should look like pulsar://host:6650")
    return host, DEFAULT_PORT if port is None else port


def _host_and_port(url: str) -> tuple[str | None, int | None]:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:  # brackets that do not match, a port that is no number
        return None, None
    more = parts.username or parts.path.strip("/") or parts.query or parts.fragment
    return (None if parts.scheme != "pulsar" or more else host or None), port


async def open_connection(
    address: tuple[str, int], options: ConnectOptions | None = None, clock: Clock | None = None
) -> ClientCnx:
    """Connect to a server and finish the handshake; the caller owns the connection.

    Raises:
        ConnectError: It cannot be reached, or refused.
    """
    clock = clock or LoopClock()
    host, port = address
    loop = asyncio.get_running_loop()
    try:
        async with deadline(clock, CONNECT_TIMEOUT_SECONDS):
            _, cnx = await loop.create_connection(lambda: ClientCnx(options, clock), host, port)
    except TimeoutError:
        raise ConnectError(f"{host}:{port} does not accept connections (10 s waited)") from None
    except (OSError, UnicodeError) as error:  # the latter for a host that is no name
        raise ConnectError(f"{host}:{port} cannot be reached: {error}") from None
    try:
        await cnx.ready()
    except BaseException:
        cnx.abort()
        raise
    return cnx


class ConnectionPool:
    """One connection to each server, opened at the first request for it.

    Bound: MAX_SERVERS servers; one more is refused.
    """

    def __init__(
        self,
        options: ConnectOptions | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._options = options
        self._clock = clock
        self._connections: dict[tuple[str, int], asyncio.Task[ClientCnx]] = {}
        self._closed = False

    async def get(self, address: tuple[str, int]) -> ClientCnx:
        """Return a ready connection to a server.

        Raises:
            ConnectError: It cannot be reached, or the pool is full.
            ClientClosedError: The pool was closed.
        """
        if self._closed:
            raise ClientClosedError("the client is closed")
        task = self._connections.get(address)
        if task is None:
            if len(self._connections) >= MAX_SERVERS:
                raise ConnectError(f"connections to {MAX_SERVERS} servers are open already")
            task = asyncio.get_running_loop().create_task(self._open(address))
            self._connections[address] = task
        return await asyncio.shield(task)

    async def _open(self, address: tuple[str, int]) -> ClientCnx:
        try:
            cnx = await open_connection(address, self._options, self._clock)
        except BaseException:
            self._connections.pop(address, None)
            raise
        cnx.on_lost = lambda: self._connections.pop(address, None)
        if cnx.closed:
            self._connections.pop(address, None)
        return cnx

    async def close(self) -> None:
        """Close every connection; no more are opened."""
        self._closed = True
        tasks = list(self._connections.values())
        self._connections.clear()
        for task in tasks:
            task.cancel()
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(outcome, ClientCnx):
                outcome.abort()
