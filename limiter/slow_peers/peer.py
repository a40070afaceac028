"""The interface of a watched connection, and the rules by which slow ones are closed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from limiter.slow_peers.write_progress import WriteProgress


@dataclass(frozen=True, slots=True)
class SlowPeerRules:
    """Say when a peer that does not read is closed. Each rule is off at 0.

    Attributes:
        grace_seconds: floodgateSlowPeerGraceMs: without progress while others wait.
        max_unwritable_seconds: floodgateMaxUnwritableSeconds: unwritable and without progress.
        min_drain_bytes_per_second: floodgateMinDrainRateBytesPerSecond: measured over ten
            seconds in which the connection was unwritable.
    """

    grace_seconds: float = 3.0
    max_unwritable_seconds: float = 60.0
    min_drain_bytes_per_second: int = 0


class Peer(Protocol):
    """A connection, as far as this module is concerned; also the owner of its permits."""

    progress: WriteProgress
    many_clients: bool

    def __hash__(self) -> int:
        """It is the owner of its permits."""

    @property
    def writable(self) -> bool:
        """True if its outbound buffer is writable."""

    def sample_progress(self, now: float) -> None:
        """Ask the kernel what the peer has acknowledged."""

    def ask_whether_it_reads(self) -> bool:
        """Send a PING; false where that is not possible yet."""

    def close_slow(self, sentence: str) -> None:
        """End the connection now; it gives back what it holds in this turn."""
