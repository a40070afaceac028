"""Recently closed producers of a connection, whose last messages may still arrive."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from limiter.clock import Clock

LEAST_GRACE_SECONDS = 5.0
"""The time to remember for a broker without keep-alive."""
MAX_CLOSED = 10_000
"""Most remembered producers of a connection; beyond, the oldest is forgotten."""


class ClosedProducers:
    """Remembers closed producers for a while.

    Args:
        clock: The connection's clock.
        seconds: The time to remember (upstream: keepAliveIntervalSeconds).
    """

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._until: dict[int, float] = {}

    def __len__(self) -> int:
        return len(self._until)

    def __contains__(self, producer_id: int) -> bool:
        return self._until.get(producer_id, -1.0) >= self._clock.now()

    def add(self, producer_id: int) -> None:
        """Remember a newly closed producer."""
        now = self._clock.now()
        self._until.pop(producer_id, None)
        while self._until:
            oldest = next(iter(self._until))
            if self._until[oldest] >= now and len(self._until) < MAX_CLOSED:
                break
            del self._until[oldest]
        self._until[producer_id] = now + self._seconds

    def discard(self, producer_id: int) -> None:
        """Forget a producer whose id is in use again."""
        self._until.pop(producer_id, None)
