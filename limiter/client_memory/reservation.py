"""The values a MemoryLimitController deals in: reservations, waiters, outcomes, statistics."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol, Self

from limiter.errors import raised_anew

if TYPE_CHECKING:
    from limiter.client_memory.errors import MemoryReserveError
    from limiter.clock import TimerHandle


class ReserveOutcome(Enum):
    """The end of one request for memory. Resizing is no request and has no outcome."""

    RESERVED = "reserved"
    FORCED = "forced"
    BUFFER_FULL = "buffer full"
    QUEUE_FULL = "queue full"
    TIMED_OUT = "timed out"
    CANCELLED = "cancelled"
    CLOSED = "closed"

    # An observer counts by outcome for each message; an enum's own hash is a function in Python.
    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class MemoryLimitStatistics:
    """A snapshot of a MemoryLimitController. Units: bytes where named, otherwise counts.

    Attributes:
        limit_bytes: The limit; 0 or less is none.
        usage_bytes: The sum of all live reservations.
        prefetched_bytes: The part of it that consumers prefetched.
        promised_bytes: What consumers were promised, and has not arrived.
        high_water_bytes: The largest usage there ever was.
        waiters: Requests that wait now.
        oldest_waiter_seconds: How long the first of them has waited.
        max_waiters: How many may.
        consumers_waiting: Consumers that hold no permits and wait for a turn.
        reservations: Reservations that were not released yet.
        rejected_total: Requests refused because the memory was used up (BUFFER_FULL, QUEUE_FULL).
        timeouts_total: Requests that were not granted in time.
        waits_total: Requests that waited, however it ended.
        wait_seconds_total: The sum of their waits.
        triggers_fired_total: Runs of threshold callbacks.
        triggers_failed_total: Those of them that raised.
        turns_passed_on_total: Turns of consumers that passed on since nothing came.
    """

    limit_bytes: int
    usage_bytes: int
    prefetched_bytes: int
    promised_bytes: int
    high_water_bytes: int
    waiters: int
    oldest_waiter_seconds: float
    max_waiters: int
    consumers_waiting: int
    reservations: int
    rejected_total: int
    timeouts_total: int
    waits_total: int
    wait_seconds_total: float
    triggers_fired_total: int
    triggers_failed_total: int
    turns_passed_on_total: int


class UsageChanged(Protocol):
    """The controller's side of a Reservation: counts each change."""

    def __call__(self, delta_bytes: int, *, ended: bool = False) -> None:
        """Enter that a reservation changed by ``delta_bytes``, and if it is over."""


def check_size(size: int) -> None:
    """Raise ValueError if ``size`` (bytes) is negative: it would lower usage and wake nobody."""
    if size < 0:
        raise ValueError(f"A reservation cannot be negative: {size} bytes")


class Reservation:
    """Bytes that are held until they are released; ``with`` releases at the end of the block.

    Give it to exactly one owner: the send operation, the received message, the open batch. The
    owner releases when its own work is over, whatever became of the future its user holds, and
    before it completes that future, so that a send from there meets what is free.

    Source: none upstream, where callers pass bare numbers.
    """

    __slots__ = ("_books", "_released", "_size")

    def __init__(self, size: int, books: UsageChanged) -> None:
        self._size = size
        self._books = books
        self._released = False

    @property
    def size(self) -> int:
        """Bytes held now; 0 once released."""
        return self._size

    @property
    def released(self) -> bool:
        """True if it is over; a reservation of 0 bytes is live until released."""
        return self._released

    def resize(self, size: int) -> None:
        """Hold ``size`` bytes from now on: growing never waits, shrinking may end other waits.

        Raises:
            ValueError: ``size`` is negative.
            RuntimeError: The reservation was released.

        Source: BatchMessageContainerImpl, which reserves by force what its buffer grew.
        """
        check_size(size)
        if self._released:
            raise RuntimeError("the reservation was released")
        # Its own size first: what the change sets off may look here.
        before, self._size = self._size, size
        self._books(size - before)

    def adjust(self, delta_bytes: int) -> None:
        """Hold ``delta_bytes`` more, or less if negative. Raises as :meth:`resize`."""
        size = self._size + delta_bytes
        if size < 0 or self._released:
            self.resize(size)
        self._size = size
        self._books(delta_bytes)

    def release(self) -> None:
        """Give everything back and grant requests that wait for it; once more is harmless."""
        if self._released:
            return
        self._released = True
        before, self._size = self._size, 0
        self._books(-before, ended=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"<Reservation {'released' if self._released else self._size}>"


class MemoryWaiter:
    """One request for memory: granted, waiting, or ended with an error."""

    __slots__ = ("_future", "enqueued_at", "error", "reservation", "size", "timer")

    def __init__(self, size: int) -> None:
        self.size = size
        self.enqueued_at = 0.0
        self.timer: TimerHandle | None = None
        self.reservation: Reservation | None = None
        self.error: MemoryReserveError | None = None
        self._future: asyncio.Future[None] | None = None

    @property
    def done(self) -> bool:
        """True if the request was granted or refused."""
        return self.reservation is not None or self.error is not None

    @property
    def caller_left(self) -> bool:
        """True if the waiting task was cancelled, though it has not run yet to say so."""
        return self._future is not None and self._future.cancelled()

    def result(self) -> Reservation:
        """Return the reservation of a request that is done, or raise why there is none."""
        if self.error is not None:
            raise raised_anew(self.error)
        if self.reservation is None:
            raise RuntimeError("the request is still waiting")
        return self.reservation

    async def wait(self) -> None:
        """Return when the request is done; for one caller."""
        if not self.done:
            self._future = asyncio.get_running_loop().create_future()
            await self._future

    def settle(self, reservation: Reservation | None, error: MemoryReserveError | None) -> None:
        """Record how the request ended and wake its task; the controller's to call."""
        self.reservation, self.error = reservation, error
        if self.timer is not None:
            self.timer.cancel()
        if self._future is not None and not self._future.done():
            self._future.set_result(None)
