"""A peer's write progress: acknowledged bytes, and the time of the last progress."""

from __future__ import annotations

WORTHY_BYTES = 16_384
"""Smaller acknowledgements are no progress, unless all bytes are acknowledged: a peer
acknowledging a byte now and then blocks memory as much as a silent peer."""
DRAIN_WINDOW_SECONDS = 10.0
"""The window in which the minimum drain rate is measured."""


class WriteProgress:
    """Write progress of a peer, from samples of its connection. Units: bytes, seconds.

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
        """Start the time without progress, unless already started, when bytes are sent."""
        if not self.outstanding:
            self.outstanding = True
            self._since, self._since_bytes = now, self._acknowledged
            self._mark(self._acknowledged, now)

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
        """Restart the window of the drain rate: until now the peer had no need to read more."""
        self._mark(self._acknowledged, now)

    def drain_rate(self, now: float) -> float | None:
        """Return bytes per second over the last window; None before the window is over."""
        passed = now - self._mark_seconds
        if not self.outstanding or passed < DRAIN_WINDOW_SECONDS:
            return None
        rate = (self._acknowledged - self._mark_bytes) / passed
        self._mark(self._acknowledged, now)
        return rate

    def _mark(self, acknowledged_bytes: int, now: float) -> None:
        self._mark_bytes, self._mark_seconds = acknowledged_bytes, now
