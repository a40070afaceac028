"""Keys of limits on connections and requests: Pulsar's if any, otherwise Floodgate's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from server.configuration.known_keys import CheckedKeys

HANDSHAKE_KEY = "floodgateHandshakeTimeoutMs"
REQUEST_RATE_KEY = "floodgateMaxRequestsPerSecondPerConnection"
UNFINISHED_KEY = "floodgateMaxUnfinishedFramesMB"
HTTP_TIME_KEY = "floodgateHttpRequestTimeoutMs"
_HANDSHAKE_MS, _HTTP_MS, _UNFINISHED_MB = 10_000, 30_000, 256
"""Defaults of profile ``floodgate``; of ``pulsar`` each is 0, which is off, as upstream has none.
"""
_HTTP_IDLE_SECONDS = 30.0
"""Upstream's default; its proxy has no such key."""


class LimitConfig(BaseModel):
    """Limits of all clients and of a single client. Units: bytes and seconds; 0 or less: unlimited.

    Attributes:
        handshake_seconds: floodgateHandshakeTimeoutMs: until CONNECT, a TLS handshake included.
        requests_a_second: floodgateMaxRequestsPerSecondPerConnection: requests of a connection.
        unfinished_frame_bytes: floodgateMaxUnfinishedFramesMB: bytes of incomplete frames, of all
            connections together.
        http_a_second: httpRequestsMaxPerSecond, if httpRequestsLimitEnabled.
        http_at_once: maxConcurrentHttpRequests.
        http_connections: maxHttpServerConnections.
        http_body_bytes: httpMaxRequestSize; with a limit, a body without a length is refused, as
            upstream.
        http_header_bytes: httpMaxRequestHeaderSize: of the request line and of each header.
        http_seconds: floodgateHttpRequestTimeoutMs: until a request is complete.
        http_idle_seconds: httpServerIdleTimeout: until a connection without a request is closed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    handshake_seconds: float = _HANDSHAKE_MS / 1000
    requests_a_second: int = 0
    unfinished_frame_bytes: int = _UNFINISHED_MB << 20
    http_a_second: float = 0.0
    http_at_once: int = 1024
    http_connections: int = 2048
    http_body_bytes: int = -1
    http_header_bytes: int = 8192
    http_seconds: float = _HTTP_MS / 1000
    http_idle_seconds: float = _HTTP_IDLE_SECONDS

    @classmethod
    def from_keys(cls, checked: CheckedKeys, *, pulsar_compatible: bool) -> Self:
        """Read the keys; an enabled rate of 0 becomes a problem."""

        def own_seconds(key: str, default_ms: int) -> float:
            if checked.is_set(key):
                return checked.seconds(key)
            checked.value(key)
            return 0.0 if pulsar_compatible else default_ms / 1000

        unfinished_mb = 0 if pulsar_compatible else _UNFINISHED_MB
        if checked.is_set(UNFINISHED_KEY):
            unfinished_mb = checked.integer(UNFINISHED_KEY)
        return cls(
            handshake_seconds=own_seconds(HANDSHAKE_KEY, _HANDSHAKE_MS),
            requests_a_second=checked.integer(REQUEST_RATE_KEY),
            unfinished_frame_bytes=unfinished_mb << 20,
            http_a_second=_http_rate(checked),
            http_at_once=checked.integer("maxConcurrentHttpRequests"),
            http_connections=checked.integer("maxHttpServerConnections"),
            http_body_bytes=_http_body_bytes(checked),
            http_header_bytes=checked.integer("httpMaxRequestHeaderSize"),
            http_seconds=own_seconds(HTTP_TIME_KEY, _HTTP_MS),
            http_idle_seconds=_http_idle_seconds(checked),
        )


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


def _http_body_bytes(checked: CheckedKeys) -> int:
    """Read the broker's key, which the proxy lacks."""
    key = "httpMaxRequestSize"
    return checked.integer(key) if checked.knows(key) else -1


def _http_idle_seconds(checked: CheckedKeys) -> float:
    """Read the broker's key, which the proxy lacks."""
    key = "httpServerIdleTimeout"
    return checked.seconds(key) if checked.knows(key) else _HTTP_IDLE_SECONDS
