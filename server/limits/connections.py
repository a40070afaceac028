"""Limits on the number of connections, in total and per address, and counts of refusals.

Source: upstream ConnectionController; texts and codes are as recorded of a real broker.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Limit(StrEnum):
    """A limit at which requests or connections are refused, as a label value of the metric."""

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
    """Counts of refused requests and connections, by the exceeded limit."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(Limit, 0)

    def add(self, limit: Limit) -> None:
        """Count a request or connection refused at a limit."""
        self.counts[limit] += 1


TOO_MANY = "Reached the maximum number of connections"


class ConnectionBounds(NamedTuple):
    """The largest numbers of simultaneous connections; 0 or less means unlimited.

    Attributes:
        most: The limit for all clients together.
        most_of_address: The limit for the clients of an IP address.
    """

    most: int = 0
    most_of_address: int = 0


class ConnectionLimits:
    """Counts open connections, and refuses connections above a limit.

    A refused connection counts until it is closed, as upstream, since it holds a socket.
    """

    def __init__(self, bounds: ConnectionBounds, refusals: Refusals | None = None) -> None:
        self._bounds = bounds
        self._refusals = refusals or Refusals()
        self._open = 0
        self.by_address: dict[str, int] = {}

    def opened(self, peer: str) -> str | None:
        """Count a new connection; return the reason to refuse it, or None if it is accepted."""
        address, bounds = address_of(peer), self._bounds
        self._open += 1
        of_address = self.by_address[address] = self.by_address.get(address, 0) + 1
        if 0 < bounds.most < self._open:
            self._refusals.add(Limit.CONNECTIONS)
            return TOO_MANY
        if 0 < bounds.most_of_address < of_address:
            self._refusals.add(Limit.CONNECTIONS_OF_ADDRESS)
            return f"{TOO_MANY} on address/{peer}"
        return None

    def ended(self, peer: str) -> None:
        """Stop counting a connection that was closed."""
        address = address_of(peer)
        self._open -= 1
        self.by_address[address] -= 1
        if not self.by_address[address]:
            del self.by_address[address]


def address_of(peer: str) -> str:
    """Return the address in a text ``address:port``."""
    return peer.rsplit(":", 1)[0]
