"""Who has taken nothing yet: while silent peers are being closed, they go after who has.

What an eviction frees must not go to the next silent peer. One that was sent little so far cannot
be told from an honest one; but who has read answers before can be told from both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from limiter.slow_peers import Peer


class Newcomers:
    """The connections of a process that have acknowledged next to nothing.

    Bound: one entry a connection.

    Attributes:
        go_last: Whether they go after the others, because silent peers are being closed.
    """

    def __init__(self) -> None:
        self._peers: dict[Peer, None] = {}
        self.go_last = False

    def __len__(self) -> int:
        return len(self._peers)

    def __contains__(self, peer: object) -> bool:
        return peer in self._peers

    def __iter__(self) -> Iterator[Peer]:
        yield from self._peers

    def came(self, peer: Peer) -> None:
        """A connection is new."""
        self._peers[peer] = None

    def is_proven(self, peer: Peer) -> None:
        """A connection has read what it was sent, is vouched for, or has ended."""
        self._peers.pop(peer, None)

    def waits(self, peer: Peer) -> bool:
        """Whether a peer goes last for having taken nothing yet."""
        return self.go_last and peer in self._peers
