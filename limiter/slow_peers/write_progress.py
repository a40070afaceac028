"""Progress of a peer: the bytes that it has acknowledged, and since when there were none."""

from __future__ import annotations

WORTHY_BYTES = 16_384
"""Less than this is no progress, unless it is everything: a peer that acknowledges a byte now and
then keeps what it holds from others as well as one that acknowledges nothing."""
DRAIN_WINDOW_SECONDS = 10.0
"""Over so long the minimum drain rate is measured."""


class WriteProgress:
    """Keeps what samples of its connection tell of one peer. Units: bytes, seconds.

    Progress is what the peer's kernel has acknowledged. By what was handed to our own kernel, an
    honest reader of 100 kB/s would stand still for 13 seconds behind default socket buffers.
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
        """Something is on its way to the peer: time runs, unless it ran already."""
        if not self.outstanding:
            self.outstanding = True
            self._since, self._since_bytes = now, self._acknowledged
            self._mark(self._acknowledged, now)

    @property
    def proven(self) -> bool:
        """True if the peer has acknowledged anything worth the name since it connected."""
        return self._acknowledged >= WORTHY_BYTES

    def sample(
        self, acknowledged_bytes: int, now: float, *, outstanding: bool, least_bytes: int = 1
    ) -> None:
        """Take what the connection says now.

        Args:
            acknowledged_bytes: All that the peer has acknowledged since it connected.
            now: The moment.
            outstanding: True if anything was sent or queued that it has not acknowledged.
            least_bytes: What must be acknowledged for it to be progress.
        """
        if outstanding:
            self.sent(now)
        self._acknowledged = max(self._acknowledged, acknowledged_bytes)
        if self._acknowledged >= self._since_bytes + least_bytes:
            self._since, self._since_bytes = now, self._acknowledged
        self.outstanding = outstanding

    def stalled_seconds(self, now: float) -> float:
        """Return for how long the peer has acknowledged nothing; 0 when nothing is outstanding."""
        return now - self._since if self.outstanding else 0.0

    def measure_from(self, now: float) -> None:
        """Begin the window of the drain rate anew: until now the peer had no need to take more."""
        self._mark(self._acknowledged, now)

    def drain_rate(self, now: float) -> float | None:
        """Return bytes a second over the last window; None while no window is over."""
        passed = now - self._mark_seconds
        if not self.outstanding or passed < DRAIN_WINDOW_SECONDS:
            return None
        rate = (self._acknowledged - self._mark_bytes) / passed
        self._mark(self._acknowledged, now)
        return rate

    def _mark(self, acknowledged_bytes: int, now: float) -> None:
        self._mark_bytes, self._mark_seconds = acknowledged_bytes, now
