"""Counters of refusals at limits of connections and requests, by limit."""

from __future__ import annotations

from enum import StrEnum


class Limit(StrEnum):
    """A limit with refusals; the value is the metric's label."""

    CONNECTIONS = "connections"
    CONNECTIONS_OF_ADDRESS = "connections_of_address"
    HANDSHAKE = "handshake_time"
    REQUEST_RATE = "request_rate"
    UNFINISHED_FRAMES = "unfinished_frames"
    HTTP_CONNECTIONS = "http_connections"
    HTTP_CONCURRENT = "http_concurrent"
    HTTP_RATE = "http_rate"
    HTTP_BODY_BYTES = "http_body_bytes"
    HTTP_HEADER_BYTES = "http_header_bytes"
    HTTP_TIME = "http_time"


class Refusals:
    """The number of refusals at each limit."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(Limit, 0)

    def add(self, limit: Limit) -> None:
        """Count a refusal."""
        self.counts[limit] += 1
