"""The values a semaphore deals in: permits, waiting requests, outcomes and statistics."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from limiter.clock import TimerHandle
    from limiter.errors import PermitAcquireError

UNBOUNDED_PERMITS = 2**63 - 1
"""What an unbounded semaphore reports as available (upstream: Long.MAX_VALUE)."""


class AcquireOutcome(Enum):
    """How one request for a permit ended."""

    GRANTED = "granted"
    TIMED_OUT = "timed out"
    QUEUE_FULL = "queue full"
    CANCELLED = "cancelled"
    CLOSED = "closed"
    OVERSIZED = "oversized"


@dataclass(frozen=True, slots=True)
class SemaphoreStatistics:
    """A snapshot of a semaphore. Units: permits (bytes, where Floodgate uses it), requests."""

    max_permits: int
    acquired_permits: int
    available_permits: int
    queue_size: int
    max_queue_size: int
    high_water_permits: int


class Permit:
    """An amount that is held until it is released, or superseded by an update."""

    __slots__ = ("_size", "owner", "returned")

    def __init__(self, size: int, owner: Hashable | None) -> None:
        self._size = size
        self.owner = owner
        # Its holder is done with it: an update that is undone later must not revive it.
        self.returned = False

    @property
    def size(self) -> int:
        """What is held now; 0 once the permit was released or superseded."""
        return self._size

    def take(self) -> int:
        """Empty the permit and return what it held; the semaphore's to call."""
        size, self._size = self._size, 0
        return size

    def refill(self, size: int) -> None:
        """Give an emptied permit its amount back; the semaphore's to call."""
        self._size = size

    def __repr__(self) -> str:
        return f"<Permit {self._size}>"


class Waiter:
    """One request for a permit: granted at once, waiting, or ended with an error."""

    __slots__ = (
        "_callbacks",
        "_future",
        "enqueued_at",
        "error",
        "is_cancelled",
        "owner",
        "permit",
        "previous",
        "previous_size",
        "size",
        "timer",
    )

    def __init__(self, size: int, previous: Permit | None, owner: Hashable | None) -> None:
        self.size = size
        self.previous = previous
        self.previous_size = 0
        self.owner = owner
        self.is_cancelled: Callable[[], bool] | None = None
        self.enqueued_at = 0.0
        self.timer: TimerHandle | None = None
        self.permit: Permit | None = None
        self.error: PermitAcquireError | None = None
        self._future: asyncio.Future[None] | None = None
        self._callbacks: list[Callable[[], object]] = []

    @property
    def done(self) -> bool:
        """Whether the request was granted or refused."""
        return self.permit is not None or self.error is not None

    @property
    def needed(self) -> int:
        """What is missing: the size, less what an update still holds."""
        return self.size if self.previous is None else self.size - self.previous.size

    def result(self) -> Permit:
        """Return the permit of a request that is done, or raise why there is none."""
        if self.error is not None:
            raise self.error
        if self.permit is None:
            raise RuntimeError("the request is still waiting")
        return self.permit

    def on_done(self, callback: Callable[[], object]) -> None:
        """Call ``callback`` in the turn in which the request is granted or refused."""
        if self.done:
            callback()
        else:
            self._callbacks.append(callback)

    async def wait(self) -> None:
        """Return when the request is done."""
        if not self.done:
            self._future = asyncio.get_running_loop().create_future()
            await self._future

    def settle(self, permit: Permit | None, error: PermitAcquireError | None) -> None:
        """Record how the request ended and wake who waits for it."""
        self.permit, self.error = permit, error
        if self.timer is not None:
            self.timer.cancel()
        if self._future is not None and not self._future.done():
            self._future.set_result(None)
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()
