"""Listening sockets; if an address cannot be bound, the error says what to do.

SO_SNDBUF is set on the listening socket, before it listens: accepted connections inherit it, on
asyncio and uvloop alike, before their first byte is sent.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import resource
import socket
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol, cast

from server.configuration.addresses import host_port
from server.connection.web_handshake import ListenerTls, WebHandshake
from server.errors import ListenError

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)

DEFAULT_BACKLOG = 4096
ACCEPTED_A_TURN = 8
"""Servers that share a listening socket. The event loop accepts a single connection per turn and
server: with one server, a thousand simultaneous connections would, in long turns, wait longer than
clients do."""

_REMEDIES = {
    errno.EADDRINUSE: "the port is in use; stop the other process, or set {port_key} to another "
    "one (0 for any free one)",
    errno.EADDRNOTAVAIL: "this address is not one of this machine's; set bindAddress to one that "
    "is, or to 0.0.0.0 for all of them",
    errno.EACCES: "permission denied; set {port_key} to one above 1023",
    errno.EPERM: "permission denied; set {port_key} to one above 1023",
    errno.EMFILE: "too many open files; raise the limit (ulimit -n)",
}


class AcceptsConnections(Protocol):
    """An interface with the methods of an event loop's server that a listener calls."""

    def close(self) -> None:
        """Stop accepting connections."""


@dataclass(frozen=True, slots=True)
class Listener:
    """A bound address on which connections are accepted until ``close``.

    Attributes:
        host: The bound address, as reported by the kernel.
        port: The bound port, also if 0 was requested.
        servers: The event loop's servers, all of the same socket.
    """

    host: str
    port: int
    servers: tuple[AcceptsConnections, ...]

    def close(self) -> None:
        """Stop accepting connections; those that are open stay open."""
        for server in self.servers:
            server.close()


class Listen(Protocol):
    """The type of functions that listen on an address: ``listen``, or a substitute in tests."""

    async def __call__(
        self,
        factory: Callable[[], asyncio.BaseProtocol],
        host: str,
        port: int,
        *,
        port_key: str,
        send_buffer_bytes: int = 0,
        tls: ListenerTls | None = None,
    ) -> Listener:
        """Listen on a TCP address, and return the listener; see ``listen``."""


async def listen(  # noqa: PLR0913 - each is one thing that a listener has
    factory: Callable[[], asyncio.BaseProtocol],
    host: str,
    port: int,
    *,
    port_key: str,
    backlog: int = DEFAULT_BACKLOG,
    send_buffer_bytes: int = 0,
    tls: ListenerTls | None = None,
) -> Listener:
    """Listen on a TCP address, and return the listener.

    Args:
        factory: Makes the protocol of each accepted connection.
        host: An address or a name of this machine; the first IPv4 address of several.
        port: The port; 0 for any free port.
        port_key: The port's configuration key.
        backlog: Connections the kernel may hold before they are accepted.
        send_buffer_bytes: SO_SNDBUF of accepted connections; 0 keeps the kernel's default. Linux
            keeps twice the number, for its own bookkeeping.
        tls: TLS by the event loop; None if the protocol implements TLS, or without TLS.

    Raises:
        ListenError: The address cannot be listened on; the message has address and remedy.
    """
    loop = asyncio.get_running_loop()
    family, address = await _resolved(host, port)
    # With an explicit protocol, asyncio's own loop sets TCP_NODELAY, as uvloop does.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        _prepare(bound, send_buffer_bytes)
        bound.bind(address)
        serve = partial(
            loop.create_server,
            partial(_made, factory if tls is None else partial(WebHandshake, factory, tls)),
            backlog=backlog,
        )
        servers = [await serve(sock=bound)]
        while len(servers) < ACCEPTED_A_TURN:
            servers.append(await serve(sock=bound.dup()))
    except OSError as error:
        bound.close()
        reason = error.strerror or str(error)
        remedy = _REMEDIES.get(error.errno or 0, reason).replace("{port_key}", port_key)
        raise ListenError(f"cannot listen on {host_port(host, port)}: {remedy}") from None
    except BaseException:
        bound.close()
        raise
    name = servers[0].sockets[0].getsockname()
    return Listener(host=name[0], port=name[1], servers=tuple(servers))


class _Refused(asyncio.Protocol):
    """A protocol that closes its connection at once, as making the real protocol failed."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast("asyncio.Transport", transport).abort()


def _made(factory: Callable[[], asyncio.BaseProtocol]) -> asyncio.BaseProtocol:
    """Return a new protocol for a connection; if making it fails, one that closes the connection.

    An error must not be raised, because uvloop would stop the listener.
    """
    try:
        return factory()
    except Exception:
        logger.exception("refusing a connection after an internal error")
        return _Refused()


def raise_open_files_limit() -> int:
    """Raise the process's limit on open files to the hard limit; return the limit.

    Thousands of client connections need more than the usual soft limit of 1,024.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError):
        # macOS reports a hard limit that it then refuses; the soft limit stays.
        return soft
    return hard


async def _resolved(host: str, port: int) -> tuple[int, tuple[object, ...]]:
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise ListenError(
            f"cannot listen on {host_port(host, port)}: {host!r} is not an address or a known "
            "name; correct bindAddress"
        ) from None
    # A name such as localhost has several addresses; clients get a single address.
    family, _, _, _, address = min(found, key=lambda entry: entry[0] != socket.AF_INET)
    return family, address


def _prepare(bound: socket.socket, send_buffer_bytes: int) -> None:
    bound.setblocking(False)
    # A restarted server must not wait until the former server's connections expire.
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if send_buffer_bytes > 0:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
