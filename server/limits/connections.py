"""Bounds on the number of connections, in total and per address.

Source: upstream ConnectionController; texts and codes are as recorded of a real broker.
"""

from __future__ import annotations

from typing import NamedTuple

from server.limits.refusals import Limit, Refusals

TOO_MANY = "Reached the maximum number of connections"


class ConnectionBounds(NamedTuple):
    """Most simultaneous connections; 0 or less: unlimited.

    Attributes:
        most: Of all clients.
        most_of_address: Of an address.
    """

    most: int = 0
    most_of_address: int = 0


class ConnectionLimits:
    """Counts connections, and refuses connections beyond the bounds.

    A refused connection counts until it is closed, as upstream, since it holds a socket.
    """

    def __init__(self, bounds: ConnectionBounds, refusals: Refusals | None = None) -> None:
        self._bounds = bounds
        self._refusals = refusals or Refusals()
        self._open = 0
        self.by_address: dict[str, int] = {}

    def opened(self, peer: str) -> str | None:
        """Count a connection of ``address:port``; return the reason of a refusal, or None."""
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
        """Uncount a closed connection."""
        address = address_of(peer)
        self._open -= 1
        self.by_address[address] -= 1
        if not self.by_address[address]:
            del self.by_address[address]


def address_of(peer: str) -> str:
    """Return the address of ``address:port``."""
    return peer.rsplit(":", 1)[0]
