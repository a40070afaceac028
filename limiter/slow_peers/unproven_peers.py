"""Peers that have not shown that they read: they go last while silent peers are in the way.

What an eviction frees must not go to the next silent peer, nor to the same one that has come again.
What a peer's kernel acknowledges is no proof, as its buffers take a hundred kilobytes that nobody
reads. So they are asked: one that answers a PING has read all that was sent before it. (A peer that
sends a PONG blindly after it was asked is believed once; then it is closed like any other.)
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from limiter.slow_peers.peer import Peer


ASKED_A_TICK = 500
"""UnprovenPeers that are sent a PING in one turn, about 10 us each."""


class UnprovenPeers:
    """The connections of a process that have not shown that they read.

    Bound: one entry a connection.

    Attributes:
        go_last: True if they go after the others, because silent peers are in the way.
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
        """Forget a connection that has read what it was sent, is vouched for, or has ended."""
        self._peers.pop(peer, None)
        self._unasked.pop(peer, None)

    def to_ask(self) -> list[Peer]:
        """Return some peers that were not asked yet; the others come next."""
        return list(islice(self._unasked, ASKED_A_TICK))

    def was_asked(self, peer: Peer, *, done: bool) -> None:
        """Ask a peer no more, or later: its handshake is not finished."""
        if peer in self._unasked:
            del self._unasked[peer]
            if not done:
                self._unasked[peer] = None  # Behind the others.

    def waits(self, peer: Peer) -> bool:
        """Return True if a peer goes last for having taken nothing yet."""
        return self.go_last and peer in self._peers
