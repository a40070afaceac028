"""The options of a connection to a broker or proxy, and the credentials to send."""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from client.exceptions import ErrorGettingAuthenticationData, PulsarException
from limiter.clock import deadline
from proto.version import FLOODGATE_VERSION

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from limiter.clock import Clock
    from proto.transport.tls import TlsLayer


class Credentials(Protocol):
    """Interface (typing Protocol) of credentials, which are read at every CONNECT and challenge."""

    @property
    def method_name(self) -> str:
        """The authentication method as Pulsar's servers name it: ``token``, ``tls``, ``basic``."""

    def auth_data(self) -> bytes | Awaitable[bytes]:
        """Return the current credentials, or an awaitable of them."""


async def current_auth_data(credentials: Credentials, clock: Clock, seconds: float) -> bytes:
    """Return the current credentials as the bytes to send.

    A plain function runs in a thread: reading files or calling a server may block.

    Args:
        credentials: The credentials, which may be arbitrary code of the application.
        clock: The source of time.
        seconds: The timeout in seconds.

    Raises:
        ErrorGettingAuthenticationData: The credentials are unavailable.
    """
    who = f"the credentials of {type(credentials).__name__}"
    ask = credentials.auth_data
    try:
        async with deadline(clock, seconds):
            awaited = inspect.iscoroutinefunction(ask)
            given: object = ask() if awaited else await asyncio.to_thread(ask)
            if inspect.isawaitable(given):
                given = await given
            named: object = credentials.method_name
    except PulsarException:
        raise
    except TimeoutError as error:
        raise ErrorGettingAuthenticationData(f"{who} did not arrive in {seconds:g} s") from error
    except Exception as error:
        raise ErrorGettingAuthenticationData(f"{who} failed: {error!r:.200}") from error
    if not isinstance(given, bytes) or not isinstance(named, str):
        raise ErrorGettingAuthenticationData(
            f"{who} are bytes and a method's name, not {type(given).__name__} and {named!r:.40}"
        )
    return given


class PassedOnCredentials(Protocol):
    """Interface (typing Protocol) of a client's credentials that a proxy passes on to a broker."""

    @property
    def method_name(self) -> str:
        """The name that Pulsar's servers use for the authentication method."""

    def auth_data(self) -> bytes:
        """Return the credentials that the client sent most recently."""

    def give_valid(self, take: Callable[[bytes], object]) -> None:
        """Call ``take`` with valid credentials: now, or after the client has refreshed them.

        If the client never refreshes them, ``take`` is not called.
        """


PROTOCOL_VERSION = 21
"""The newest supported protocol version."""
MAX_PENDING_REQUESTS = 50_000
"""Maximum number of unanswered requests of a connection (upstream: maxLookupRequest)."""
OPERATION_TIMEOUT_SECONDS = 30.0
"""Timeout of a request (upstream: operationTimeoutMs)."""
CONNECT_TIMEOUT_SECONDS = 10.0
"""Timeout for establishing a connection (upstream: connectionTimeoutMs)."""
MAX_SERVERS = 1_000
"""Maximum number of servers with pooled connections."""
KEEP_ALIVE_SECONDS = 30.0
"""Interval of keep-alive pings (upstream: keepAliveIntervalSeconds)."""


@dataclass(frozen=True, slots=True)
class ConnectOptions:
    """The options of a connection: announced properties, timeouts, credentials and limits.

    Attributes:
        client_version: Name and version of the client, sent in CONNECT as free text.
        protocol_version: Newest protocol version that the client offers.
        proxy_version: Version of the proxy, set only by a proxy.
        original_principal: Role of the client behind a proxy, or None.
        original_credentials: Credentials of the client behind a proxy, with which the proxy answers
            the server's challenges.
        operation_timeout_seconds: Timeout of a request.
        max_pending_requests: Maximum number of unanswered requests.
        keep_alive_seconds: Interval of keep-alive pings; 0 or less for none. A server that sends
            nothing for a whole interval is disconnected.
        drain_oversized: If True, a request or response above the frame limit fails only that
            request; otherwise it ends the connection, as upstream.
        answer_limit_bytes: Maximum size of a topic list in bytes, if below the server's limit. A
            proxy sets it for clients with smaller frame limits.
        connect_timeout_seconds: Timeout for establishing a connection.
        credentials: Credentials to send in CONNECT and at every challenge, or None.
        tls: Function that creates the TLS layer for a host; None refuses ``pulsar+ssl`` addresses.
        max_servers: Maximum number of servers with pooled connections.
    """

    client_version: str = FLOODGATE_VERSION
    protocol_version: int = PROTOCOL_VERSION
    proxy_version: str | None = None
    original_principal: str | None = None
    original_credentials: PassedOnCredentials | None = field(default=None, repr=False)
    operation_timeout_seconds: float = OPERATION_TIMEOUT_SECONDS
    max_pending_requests: int = MAX_PENDING_REQUESTS
    drain_oversized: bool = False
    keep_alive_seconds: float = KEEP_ALIVE_SECONDS
    answer_limit_bytes: int | None = None
    connect_timeout_seconds: float = CONNECT_TIMEOUT_SECONDS
    credentials: Credentials | None = None
    tls: Callable[[str], TlsLayer] | None = None
    max_servers: int = MAX_SERVERS
