"""Keys of limits on connections and requests: Pulsar's if any, otherwise Floodgate's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from server.configuration.settings import Key, Read, Settings, megabytes, milliseconds

if TYPE_CHECKING:
    from server.configuration.known_keys import CheckedKeys


def _http_rate(checked: CheckedKeys) -> float:
    key, on = "httpRequestsMaxPerSecond", checked.flag("httpRequestsLimitEnabled")
    rate = checked.value(key)
    if not on or not isinstance(rate, (int, float)):
        return 0.0
    if rate <= 0:
        checked.refuse(
            f"{key}={rate}: no request would pass; set more, or httpRequestsLimitEnabled=false"
        )
    return rate


class LimitConfig(Settings):
    """Limits of all clients and of a single client. Units: bytes and seconds; 0 or less: unlimited.

    Profile ``pulsar`` has upstream's limits alone.
    """

    handshake_seconds: float = Key(
        "floodgateHandshakeTimeoutMs", milliseconds, floodgate=10_000, pulsar=0
    )
    """Until CONNECT, a TLS handshake included."""
    requests_a_second: int = Key("floodgateMaxRequestsPerSecondPerConnection")
    unfinished_frame_bytes: int = Key(
        "floodgateMaxUnfinishedFramesMB", megabytes, floodgate=256, pulsar=0
    )
    """Bytes of incomplete frames, of all connections together."""
    http_a_second: float = Read(_http_rate)
    """httpRequestsMaxPerSecond, if httpRequestsLimitEnabled."""
    http_at_once: int = Key("maxConcurrentHttpRequests")
    http_connections: int = Key("maxHttpServerConnections")
    http_body_bytes: int = Key("httpMaxRequestSize", elsewhere=-1)
    """With a limit, a body without a length is refused, as upstream; a proxy has no such key."""
    http_header_bytes: int = Key("httpMaxRequestHeaderSize")
    """Of the request line and of each header; 1 or more."""
    http_seconds: float = Key(
        "floodgateHttpRequestTimeoutMs", milliseconds, floodgate=30_000, pulsar=0
    )
    """Until a request is complete."""
    http_idle_seconds: float = Key("httpServerIdleTimeout", milliseconds, elsewhere=30_000)
    """Until a connection without a request is closed; a proxy has no such key."""
