"""Connecting of clients: address resolution, open-file limit, CONNECT handshake."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import ssl
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from client.connection.service_url import server_address
from client.exceptions import ConnectError
from limiter.clock import LoopClock, deadline
from loadgen.access import own_tls
from loadgen.errors import LoadgenError

CONNECT_TIMEOUT_SECONDS = 10.0
# Below the smallest listen backlog in use (128), so that no SYN is dropped and retransmitted a
# second later.
CONNECTING_AT_ONCE = 64
_OTHER_OPEN_FILES = 64
TLS_SCHEME = "pulsar+ssl"


def parse_service_url(service_url: str) -> tuple[str, int]:
    """Return the host and port of ``pulsar://host[:port]`` or ``pulsar+ssl://host[:port]``.

    Raises:
        ValueError: The URL has another scheme, several hosts, no host, or an invalid port.
    """
    with suppress(ConnectError):
        host, port = server_address(service_url, tls=service_url.startswith(f"{TLS_SCHEME}:"))
        if port and "," not in host:
            return host, port
    raise ValueError("not of the form pulsar://host:port, where a port is a number from 1 to 65535")


class ConnectFailedError(Exception):
    """The server did not answer CONNECT with CONNECTED; the message is the reason."""


ServerAddress = tuple[socket.AddressFamily, tuple[str, int]]


def raise_open_file_limit(connections: int) -> None:
    """Raise this process's limit of open files to the number that its connections need.

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


class Connector:
    """Connects a task's clients, at a time at most as many as a listen backlog holds.

    Mutable state: the resolved addresses of servers.

    Attributes:
        service: ``host:port`` in the service URL.
    """

    def __init__(self) -> None:
        self.service = ""
        self._addresses: dict[str, ServerAddress] = {}  # by netloc; brokers are few
        self._places = asyncio.Semaphore(CONNECTING_AT_ONCE)
        self._tls: ssl.SSLContext | None = None

    async def resolve(self, service_url: str, connections: int = 1) -> None:
        """Resolve the server's address, and raise the limit of open files to fit the connections.

        Raises:
            LoadgenError: The host name is unknown, a certificate file cannot be used, or the hard
                limit of open files is too low.
        """
        raise_open_file_limit(connections)
        host, port = parse_service_url(service_url)
        self.service = urlsplit(service_url).netloc
        if service_url.startswith(f"{TLS_SCHEME}:"):
            self._tls = own_tls()
        try:
            self._addresses[self.service] = await _resolved(host, port)
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
        """Connect a client to the service URL or to ``other``; return the reason of a failure."""
        try:
            async with self._places:
                await self._connect(client, receive_buffer_bytes, other)
        except (OSError, ConnectFailedError, ValueError) as error:
            return connect_failure(error)
        return None

    async def _connect(self, client: Any, receive_buffer_bytes: int, other: str | None) -> None:  # noqa: ANN401
        """Open a client's connection, and wait until the server has answered CONNECT.

        Raises:
            OSError: The connection failed; a TimeoutError if CONNECTED did not arrive in time.
            ConnectFailedError: The server did not answer CONNECT with CONNECTED.
        """
        netloc = self.service if other is None else other
        host, port = parse_service_url(f"pulsar://{netloc}")
        address = self._addresses.get(netloc) or await _resolved(host, port)
        family, there = self._addresses[netloc] = address
        loop, handed_over = asyncio.get_running_loop(), False
        connection = socket.socket(family, socket.SOCK_STREAM)
        try:
            connection.setblocking(False)
            # TCP's window is fixed when the connection is made.
            if receive_buffer_bytes:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
            if client.plan.source_address is not None:
                connection.bind((client.plan.source_address, 0))
            async with deadline(LoopClock(), CONNECT_TIMEOUT_SECONDS):
                await loop.sock_connect(connection, there)
                await loop.create_connection(
                    lambda: client,
                    sock=connection,
                    ssl=self._tls,
                    server_hostname=None if self._tls is None else host,
                )
                handed_over = True
                await client.handshake
        except BaseException:
            (client if handed_over else connection).close()
            raise


async def _resolved(host: str, port: int) -> ServerAddress:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    family, _, _, _, address = found[0]
    return family, (str(address[0]), int(address[1]))


def connect_failure(error: Exception) -> str:
    """Return the reason, in words, why a connection could not be made."""
    if isinstance(error, TimeoutError) and not error.errno:
        return f"no CONNECTED within {CONNECT_TIMEOUT_SECONDS:g} s"
    if isinstance(error, ssl.SSLError):
        return f"TLS was not agreed upon ({error.reason or type(error).__name__})"
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return str(error)
