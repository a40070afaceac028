"""The interface of a watched connection, and the rules for closing slow peers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from limiter.slow_peers.write_progress import WriteProgress


@dataclass(frozen=True, slots=True)
class SlowPeerRules:
    """Limits for closing a non-reading peer. Each rule is off at 0.

    Attributes:
        grace_seconds: floodgateSlowPeerGraceMs: without progress, under contention.
        max_unwritable_seconds: floodgateMaxUnwritableSeconds: unwritable and without progress.
        min_drain_bytes_per_second: floodgateMinDrainRateBytesPerSecond: measured over ten seconds
            in which the connection was unwritable.
    """

    grace_seconds: float = 3.0
    max_unwritable_seconds: float = 60.0
    min_drain_bytes_per_second: int = 0


class Peer(Protocol):
    """A watched connection, and owner of its permits."""

    progress: WriteProgress
    many_clients: bool

    def __hash__(self) -> int:
        """Return the hash, by which the limiter finds its permits."""

    @property
    def writable(self) -> bool:
        """True if its outbound buffer is writable."""

    def sample_progress(self, now: float) -> None:
        """Read the peer's acknowledged bytes from the kernel."""

    def ask_whether_it_reads(self) -> bool:
        """Send a PING; return False if not yet possible."""

    def close_slow(self, sentence: str) -> None:
        """Close the connection, releasing its memory in this turn."""
