"""Peers that have not proven that they read, deferred while silent peers are in the way.

Memory released by an eviction must not go to the next silent peer, nor to the same peer after a
reconnect. Acknowledgements by a peer's kernel prove nothing, as its buffers take a hundred unread
kilobytes. So unproven peers are sent a PING: a peer that answers has read all earlier bytes. (A
peer that sends a PONG blindly after the PING is believed once; then it is closed like any other.)
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from limiter.slow_peers.peer import Peer


ASKED_A_TICK = 500
"""Unproven peers sent a PING in one turn, about 10 us each."""


class UnprovenPeers:
    """The connections of a process that have not proven that they read.

    Bound: an entry for each connection.

    Attributes:
        go_last: True while deferred, because silent peers are in the way.
    """

    def __init__(self) -> None:
        self._peers: dict[Peer, None] = {}
        self._unasked: dict[Peer, None] = {}
        self.go_last = False

    def __len__(self) -> int:
        return len(self._peers)

    def __contains__(self, peer: object) -> bool:
        return peer in self._peers

    def __iter__(self) -> Iterator[Peer]:
        yield from self._peers

    def came(self, peer: Peer) -> None:
        """Add a new connection."""
        self._peers[peer] = self._unasked[peer] = None

    def is_proven(self, peer: Peer) -> None:
        """Forget a connection that has read its bytes, is vouched for, or has ended."""
        self._peers.pop(peer, None)
        self._unasked.pop(peer, None)

    def to_ask(self) -> list[Peer]:
        """Return some peers to send a PING to; the rest come next."""
        return list(islice(self._unasked, ASKED_A_TICK))

    def was_asked(self, peer: Peer, *, done: bool) -> None:
        """Remove a peer from the PING list, or move it to the end before its handshake is done."""
        if peer in self._unasked:
            del self._unasked[peer]
            if not done:
                self._unasked[peer] = None  # Behind the rest.

    def waits(self, peer: Peer) -> bool:
        """Return True if a peer is deferred as unproven."""
        return self.go_last and peer in self._peers
