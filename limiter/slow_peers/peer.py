"""A watched connection, its progress and proof of reading, and the rules for closing it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

WORTHY_BYTES = 16_384
"""Smaller acknowledgements are no progress, unless all bytes are acknowledged: a peer
acknowledging a byte now and then blocks memory as much as a silent peer."""
DRAIN_WINDOW_SECONDS = 10.0
"""The window in which the minimum drain rate is measured."""


class WriteProgress:
    """Progress of a peer in acknowledging bytes, from samples of its connection.

    Units: bytes, seconds.

    Progress is the bytes acknowledged by the peer's kernel. Measured by the bytes handed to the
    local kernel, an honest reader of 100 kB/s would stand still for 13 seconds behind default
    socket buffers.
    """

    __slots__ = (
        "_acknowledged",
        "_mark_bytes",
        "_mark_seconds",
        "_since",
        "_since_bytes",
        "outstanding",
    )

    def __init__(self) -> None:
        self.outstanding = False
        self._acknowledged = 0
        self._since_bytes = 0
        self._since = 0.0
        self._mark_bytes = 0
        self._mark_seconds = 0.0

    def sent(self, now: float) -> None:
        """Record that bytes were sent: the time without progress starts, unless already started."""
        if not self.outstanding:
            self.outstanding = True
            self._since, self._since_bytes = now, self._acknowledged
            self.measure_from(now)

    @property
    def proven(self) -> bool:
        """True if the peer has acknowledged a significant number of bytes since it connected."""
        return self._acknowledged >= WORTHY_BYTES

    def sample(
        self, acknowledged_bytes: int, now: float, *, outstanding: bool, least_bytes: int = 1
    ) -> None:
        """Record a sample of the connection.

        Args:
            acknowledged_bytes: All bytes acknowledged since the peer connected.
            now: The time of the sample.
            outstanding: True if any sent or queued bytes are unacknowledged.
            least_bytes: The smallest acknowledgement that counts as progress.
        """
        if outstanding:
            self.sent(now)
        self._acknowledged = max(self._acknowledged, acknowledged_bytes)
        if self._acknowledged >= self._since_bytes + least_bytes:
            self._since, self._since_bytes = now, self._acknowledged
        self.outstanding = outstanding

    def stalled_seconds(self, now: float) -> float:
        """Return the seconds without acknowledgements; 0 when nothing is outstanding."""
        return now - self._since if self.outstanding else 0.0

    def measure_from(self, now: float) -> None:
        """Restart the measurement of the drain rate at ``now``.

        Until now the peer had no need to read more.
        """
        self._mark_bytes, self._mark_seconds = self._acknowledged, now

    def drain_rate(self, now: float) -> float | None:
        """Return bytes acknowledged per second in the last window; None before it is over."""
        passed = now - self._mark_seconds
        if not self.outstanding or passed < DRAIN_WINDOW_SECONDS:
            return None
        rate = (self._acknowledged - self._mark_bytes) / passed
        self.measure_from(now)
        return rate


@dataclass(frozen=True, slots=True)
class SlowPeerRules:
    """Limits for closing a non-reading peer. Each rule is off at 0.

    Attributes:
        grace_seconds: floodgateSlowPeerGraceMs: time without progress while a request waits.
        max_unwritable_seconds: floodgateMaxUnwritableSeconds: time unwritable and without progress.
        min_drain_bytes_per_second: floodgateMinDrainRateBytesPerSecond: measured over ten seconds
            in which the connection was unwritable.
    """

    grace_seconds: float = 3.0
    max_unwritable_seconds: float = 60.0
    min_drain_bytes_per_second: int = 0


class Peer(Protocol):
    """Interface of a watched connection, which is also the owner of its permits."""

    progress: WriteProgress
    many_clients: bool

    def __hash__(self) -> int:
        """Return the hash by which the limiter finds the connection's permits."""

    @property
    def writable(self) -> bool:
        """True if the connection's outbound buffer is writable."""

    def sample_progress(self, now: float) -> None:
        """Read the peer's acknowledged bytes from the kernel."""

    def ask_whether_it_reads(self) -> bool:
        """Send a PING to test if the peer reads; return False if not yet possible."""

    def close_slow(self, sentence: str) -> None:
        """Close the connection, and release its memory immediately."""


ASKED_A_TICK = 500
"""Unproven peers sent a PING in one turn, about 10 us each."""


class UnprovenPeers:
    """The connections of a process whose peers have not proven that they read.

    Memory released by an eviction must not go to the next non-reading peer, nor to the same peer
    after a reconnect. Acknowledgements by a peer's kernel prove nothing, as its buffers take a
    hundred unread kilobytes. So unproven peers are sent a PING: a peer that answers has read all
    earlier bytes. (A peer that sends a PONG blindly after the PING is believed once; then it is
    closed like any other.)

    Bound: an entry for each connection.

    Attributes:
        go_last: True while unproven peers are deferred, because a non-reading peer blocks a
            request.
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
        """Add a new connection, which has not proven anything yet."""
        self._peers[peer] = self._unasked[peer] = None

    def is_proven(self, peer: Peer) -> None:
        """Forget a connection that has read its bytes, is vouched for, or has ended."""
        self._peers.pop(peer, None)
        self._unasked.pop(peer, None)

    def to_ask(self) -> list[Peer]:
        """Return some of the peers to send a PING to; later calls return the others."""
        return list(islice(self._unasked, ASKED_A_TICK))

    def was_asked(self, peer: Peer, *, done: bool) -> None:
        """Remove a peer that was sent a PING from the list; if not yet sent, put it last."""
        if peer in self._unasked:
            del self._unasked[peer]
            if not done:
                self._unasked[peer] = None  # Behind the rest.

    def waits(self, peer: Peer) -> bool:
        """Return True if a peer is deferred because it has not proven that it reads."""
        return self.go_last and peer in self._peers
