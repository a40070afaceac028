"""Connects clients: finds the address, raises the limit of open files, shakes hands."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import ssl
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from limiter.clock import LoopClock, deadline
from loadgen.access import own_tls
from loadgen.errors import LoadgenError

CONNECT_TIMEOUT_SECONDS = 10.0
# Below the smallest listen backlog in use (128), so that no SYN is dropped and sent again a
# second later.
CONNECTING_AT_ONCE = 64
_OTHER_OPEN_FILES = 64
TLS_SCHEME = "pulsar+ssl"
_DEFAULT_PORTS = {"pulsar": 6650, TLS_SCHEME: 6651}


def parse_service_url(service_url: str) -> tuple[str, int]:
    """Return host and port of ``pulsar://host[:port]`` or ``pulsar+ssl://host[:port]``.

    Raises:
        ValueError: Another scheme, several hosts, no host, or a port that is none.
    """
    form = "not of the form pulsar://host:port"
    try:
        parts = urlsplit(service_url)
        port = parts.port
    except ValueError:
        raise ValueError(form) from None
    default = _DEFAULT_PORTS.get(parts.scheme)
    if default is None or not parts.hostname or "," in parts.netloc:
        raise ValueError(form)
    return parts.hostname, default if port is None else port


class ConnectFailedError(Exception):
    """A client did not get as far as CONNECTED; the message says why."""


class TlsOfServer(NamedTuple):
    """Whom a connection trusts, and the name that the server's certificate has to have."""

    context: ssl.SSLContext
    host: str


ServerAddress = tuple[socket.AddressFamily, tuple[str, int]]


def raise_open_file_limit(connections: int) -> None:
    """Allow this process as many open files as its connections need.

    Raises:
        LoadgenError: The hard limit is too low.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = connections + _OTHER_OPEN_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        if hard != resource.RLIM_INFINITY and hard < needed:
            raise LoadgenError(
                f"{connections} connections in one process need {needed} open files and the hard "
                f"limit is {hard}: raise it (ulimit -Hn), or use more tasks or fewer clients"
            )
        resource.setrlimit(
            resource.RLIMIT_NOFILE, (needed if hard == resource.RLIM_INFINITY else hard, hard)
        )


class Connects(Protocol):
    """Connects the clients of one task: ``Connector``, or what stands in for sockets.

    Attributes:
        service: ``host:port`` of the service URL.
    """

    service: str

    def allow(self, connections: int) -> None:
        """See Connector.allow."""

    async def resolve(self, service_url: str) -> None:
        """See Connector.resolve."""

    async def connect(
        self,
        client: Any,  # noqa: ANN401 - a LoadConnection, which knows this module
        receive_buffer_bytes: int,
        other: str | None = None,
    ) -> str | None:
        """See Connector.connect."""


class Connector:
    """Connects the clients of one task, as many at once as a listen backlog takes.

    Mutable state: the server's address, once it is resolved.
    """

    def __init__(self) -> None:
        self._address: ServerAddress | None = None
        self._others: dict[str, ServerAddress] = {}  # brokers' own
        self.service = ""
        self._places = asyncio.Semaphore(CONNECTING_AT_ONCE)
        self._host = ""
        self._tls: ssl.SSLContext | None = None

    def allow(self, connections: int) -> None:
        """See raise_open_file_limit."""
        raise_open_file_limit(connections)

    async def resolve(self, service_url: str) -> None:
        """Find the server's address.

        Raises:
            LoadgenError: Its name is unknown, or a file of certificates cannot be used.
        """
        host, port = parse_service_url(service_url)
        self._host, self.service = host, urlsplit(service_url).netloc
        if service_url.startswith(f"{TLS_SCHEME}:"):
            self._tls = own_tls()
        try:
            self._address = await _resolved(host, port)
        except OSError as error:
            raise LoadgenError(
                f"the host of {service_url} is unknown: {error.strerror or error}"
            ) from None

    async def connect(
        self,
        client: Any,  # noqa: ANN401 - a LoadConnection, which knows this module
        receive_buffer_bytes: int,
        other: str | None = None,
    ) -> str | None:
        """Connect one client, to another ``host:port`` if any; return why that failed, or None."""
        address, named = self._address, self._host
        try:
            async with self._places:
                if other is not None:
                    host, port = parse_service_url(f"pulsar://{other}")
                    address = self._others.get(other) or await _resolved(host, port)
                    self._others[other], named = address, host
                assert address is not None
                tls = None if self._tls is None else TlsOfServer(self._tls, named)
                await connect(client, address, receive_buffer_bytes, tls)
        except (OSError, ConnectFailedError) as error:
            return connect_failure(error)
        return None


async def _resolved(host: str, port: int) -> ServerAddress:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    family, _, _, _, address = found[0]
    return family, (str(address[0]), int(address[1]))


async def connect(
    client: Any,  # noqa: ANN401 - a LoadConnection, which knows this module
    address: ServerAddress,
    receive_buffer_bytes: int,
    tls: TlsOfServer | None = None,
) -> None:
    """Connect one client and shake hands.

    Raises:
        OSError: No connection; a TimeoutError if there was no CONNECTED in time.
        ConnectFailedError: The server did not answer CONNECT with CONNECTED.
    """
    loop = asyncio.get_running_loop()
    connection = new_socket(address, receive_buffer_bytes, client.plan.source_address)
    handed_over = False
    try:
        async with deadline(LoopClock(), CONNECT_TIMEOUT_SECONDS):
            await loop.sock_connect(connection, address[1])
            await loop.create_connection(
                lambda: client,
                sock=connection,
                ssl=None if tls is None else tls.context,
                server_hostname=None if tls is None else tls.host,
            )
            handed_over = True
            await client.handshake
    except BaseException:
        if handed_over:
            client.close()
        else:
            connection.close()
        raise


def new_socket(
    address: ServerAddress, receive_buffer_bytes: int, source_address: str | None
) -> socket.socket:
    """Return a socket that is ready to be connected.

    Args:
        address: The server.
        receive_buffer_bytes: SO_RCVBUF; 0 leaves the kernel's own.
        source_address: Local address to connect from; None leaves it to the kernel.

    Raises:
        OSError: There are no more sockets, or the source address is not this machine's.
    """
    connection = socket.socket(address[0], socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        # The window that TCP offers is settled when the connection is made.
        if receive_buffer_bytes:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        if source_address is not None:
            connection.bind((source_address, 0))
    except BaseException:
        connection.close()
        raise
    return connection


def connect_failure(error: Exception) -> str:
    """Return why a client could not connect."""
    if isinstance(error, TimeoutError) and not error.errno:
        return f"no CONNECTED within {CONNECT_TIMEOUT_SECONDS:g} s"
    if isinstance(error, ssl.SSLError):
        return f"TLS was not agreed upon ({error.reason or type(error).__name__})"
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return str(error)
