"""The options of a connection to a broker or proxy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from proto.version import FLOODGATE_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.connection.authentication import Credentials
    from proto.transport.tls import TlsLayer

PROTOCOL_VERSION = 21
"""The newest protocol version this client speaks."""
MAX_PENDING_REQUESTS = 50_000
"""Unanswered requests a connection may have (upstream: maxLookupRequest)."""
OPERATION_TIMEOUT_SECONDS = 30.0
"""Seconds that a request may take (upstream: operationTimeoutMs)."""
CONNECT_TIMEOUT_SECONDS = 10.0
"""Seconds that a server may take to accept a connection (upstream: connectionTimeoutMs)."""
MAX_SERVERS = 1_000
"""Servers a pool keeps connections to."""
KEEP_ALIVE_SECONDS = 30.0
"""Seconds between questions whether a server lives (upstream: keepAliveIntervalSeconds)."""


@dataclass(frozen=True, slots=True)
class ConnectOptions:
    """The options of a connection: what it tells of itself, and how patient it is.

    Attributes:
        client_version: Free text in CONNECT.
        protocol_version: Newest version offered.
        proxy_version: Set by a proxy only.
        original_principal: Role of the client behind a proxy; None without.
        original_auth_method: Method of that client's credentials, where they are passed on.
        original_auth_data: That client's credentials; never shown.
        operation_timeout_seconds: How long a request may take.
        max_pending_requests: Unanswered requests the connection may have.
        keep_alive_seconds: How often the server is asked whether it lives; 0 or less: never. One
            that sends not a byte until the next time is given up.
        drain_oversized: Whether a request or an answer above the frame limit costs that request
            an error; otherwise it costs the connection, as upstream.
        answer_limit_bytes: What a topic list's length field may say at most, where that is less
            than the server may send: for a proxy whose clients take no larger frames.
        connect_timeout_seconds: How long a server may take to accept the connection.
        credentials: Shown in CONNECT and at every challenge; None for none.
        tls: Makes the TLS of a connection to a host, for ``pulsar+ssl``; None refuses such
            addresses.
        max_servers: Connections to different servers that a pool may have.
    """

    client_version: str = FLOODGATE_VERSION
    protocol_version: int = PROTOCOL_VERSION
    proxy_version: str | None = None
    original_principal: str | None = None
    original_auth_method: str | None = None
    original_auth_data: str | None = field(default=None, repr=False)
    operation_timeout_seconds: float = OPERATION_TIMEOUT_SECONDS
    max_pending_requests: int = MAX_PENDING_REQUESTS
    drain_oversized: bool = False
    keep_alive_seconds: float = KEEP_ALIVE_SECONDS
    answer_limit_bytes: int | None = None
    connect_timeout_seconds: float = CONNECT_TIMEOUT_SECONDS
    credentials: Credentials | None = None
    tls: Callable[[str], TlsLayer] | None = None
    max_servers: int = MAX_SERVERS
