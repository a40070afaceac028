"""A pool of shared connections, at most one to each server."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from typing import TYPE_CHECKING, NamedTuple

import aiohappyeyeballs

from client.connection.cnx import ClientCnx
from client.connection.connect_options import ConnectOptions, current_auth_data
from client.connection.errors import ClientClosedError
from client.exceptions import ConnectError
from limiter.clock import Clock, LoopClock, deadline

if TYPE_CHECKING:
    from collections.abc import Callable

_NEXT_ADDRESS_SECONDS = 0.25


class ServerKey(NamedTuple):
    """The key of a pooled connection: server address, TLS or not, and broker behind a proxy.

    Attributes:
        address: Host and port.
        tls: Whether to use TLS.
        target: The broker behind a proxy, as ``host:port``; None without a proxy.
    """

    address: tuple[str, int]
    tls: bool = False
    target: str | None = None


async def open_connection(
    address: tuple[str, int],
    options: ConnectOptions | None = None,
    clock: Clock | None = None,
    *,
    tls: bool = False,
    target: str | None = None,
) -> ClientCnx:
    """Connect to a server and complete the handshake; the caller must close the connection.

    Args:
        address: Host and port.
        options: Connection options.
        clock: The source of time.
        tls: Whether to use TLS as configured in the options.
        target: The broker behind a proxy; see ServerKey.

    Raises:
        ConnectError: The server is unreachable, or refused.
        ServerResponseError: The server refused with an error, such as for invalid credentials.
        ErrorGettingAuthenticationData: The credentials are unavailable.
    """
    clock = clock or LoopClock()
    options = options or ConnectOptions()
    host, port = address
    if tls and options.tls is None:
        raise ConnectError(f"{host}:{port} speaks TLS, and this client has no TLS options")

    auth_data = b""
    if options.credentials is not None:
        auth_data = await current_auth_data(
            options.credentials, clock, options.operation_timeout_seconds
        )
    layer = options.tls(host) if tls and options.tls is not None else None
    transport = await _connected(host, port, options.connect_timeout_seconds, clock)
    # Created late: a ClientCnx is large, and thousands may retry while a server is away.
    cnx = ClientCnx(options, clock, layer, target, auth_data)
    transport.set_protocol(cnx)
    try:
        cnx.connection_made(transport)
        await cnx.ready()
    except BaseException:
        cnx.abort()
        raise
    return cnx


async def _connected(host: str, port: int, seconds: float, clock: Clock) -> asyncio.Transport:
    """Return a transport to whichever address of a host answers first.

    After a quarter of a second without an answer the next address is tried in parallel (RFC 8305).
    """
    loop = asyncio.get_running_loop()
    try:
        async with deadline(clock, seconds):
            if _is_address(host):
                transport, _ = await loop.create_connection(asyncio.Protocol, host, port)
            else:
                found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
                chosen = await aiohappyeyeballs.start_connection(
                    found, happy_eyeballs_delay=_NEXT_ADDRESS_SECONDS, interleave=1
                )
                try:
                    transport, _ = await loop.create_connection(asyncio.Protocol, sock=chosen)
                except BaseException:
                    chosen.close()
                    raise
    except TimeoutError:
        text = f"{host}:{port} does not accept connections ({seconds:g} s waited)"
        raise ConnectError(text) from None
    except (OSError, UnicodeError) as error:  # UnicodeError: an invalid host name
        raise ConnectError(f"{host}:{port} cannot be reached: {error}") from None
    if transport.is_closing():
        raise ConnectError(f"{host}:{port} closed the connection")
    return transport


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class ConnectionPool:
    """A pool with one connection for each server, opened when it is first requested.

    Holds at most ``max_servers`` connections (see options); a further server is refused.

    Args:
        options: Connection options.
        clock: The source of time.
        on_opened: Function called when a connection is ready.
    """

    def __init__(
        self,
        options: ConnectOptions | None = None,
        clock: Clock | None = None,
        on_opened: Callable[[], None] | None = None,
    ) -> None:
        self._options = options or ConnectOptions()
        self._on_opened = on_opened
        self._clock = clock
        self._connections: dict[ServerKey, asyncio.Task[ClientCnx]] = {}
        self._closed = False

    async def get(
        self, address: tuple[str, int], *, tls: bool = False, target: str | None = None
    ) -> ClientCnx:
        """Return a connection to a server with a completed handshake; see ServerKey.

        Raises:
            ConnectError: The server is unreachable, or the pool is full.
            ServerResponseError: The server refused with an error, such as for invalid credentials.
            ClientClosedError: The pool was closed.
        """
        if self._closed:
            raise ClientClosedError("the client is closed")
        key = ServerKey(address, tls, target)
        task = self._connections.get(key)
        if task is None:
            bound = self._options.max_servers
            if len(self._connections) >= bound:
                raise ConnectError(f"connections to {bound} servers are open already")
            task = asyncio.get_running_loop().create_task(self._open(key))
            task.add_done_callback(_was_told)
            self._connections[key] = task
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            asking = asyncio.current_task()
            if self._closed and task.cancelled() and asking is not None and not asking.cancelling():
                raise ClientClosedError("the client is closed") from None
            raise

    async def _open(self, key: ServerKey) -> ClientCnx:
        try:
            cnx = await open_connection(
                key.address, self._options, self._clock, tls=key.tls, target=key.target
            )
        except BaseException:
            self._connections.pop(key, None)
            raise
        cnx.on_lost = lambda: self._connections.pop(key, None)
        if cnx.closed:
            self._connections.pop(key, None)
        elif self._on_opened is not None:
            self._on_opened()
        return cnx

    async def close(self) -> None:
        """Close all connections, and refuse to open new ones."""
        self._closed = True
        tasks = list(self._connections.values())
        self._connections.clear()
        for task in tasks:
            task.cancel()
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(outcome, ClientCnx):
                outcome.abort()


def _was_told(task: asyncio.Task[ClientCnx]) -> None:
    """Read a connecting task's error, so that asyncio does not warn about it.

    The warning would appear if no caller waits for the task.
    """
    if not task.cancelled():
        task.exception()
