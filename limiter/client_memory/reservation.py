"""Types used by MemoryLimitController: reservations, waiting requests, outcomes, statistics."""

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
    """Outcomes of memory requests. A resized reservation is no request and has no outcome."""

    RESERVED = "reserved"
    FORCED = "forced"
    BUFFER_FULL = "buffer full"
    QUEUE_FULL = "queue full"
    TIMED_OUT = "timed out"
    CANCELLED = "cancelled"
    CLOSED = "closed"

    # Observers count each message by outcome, and an Enum's own hash is a slow Python function.
    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class MemoryLimitStatistics:
    """A snapshot of a MemoryLimitController. Units: bytes where named, otherwise counts.

    Attributes:
        limit_bytes: The limit; 0 or less is unlimited.
        usage_bytes: The sum of all live reservations.
        prefetched_bytes: The part of usage prefetched by consumers.
        promised_bytes: Bytes promised to consumers that have not arrived yet.
        high_water_bytes: The largest usage ever.
        waiters: Waiting requests.
        oldest_waiter_seconds: Age of the oldest waiting request.
        max_waiters: Largest number of waiting requests at a time.
        consumers_waiting: Consumers that hold no permits and wait for a turn.
        reservations: Live reservations.
        rejected_total: Requests refused at the limit (BUFFER_FULL, QUEUE_FULL).
        timeouts_total: Requests that were not granted in time.
        waits_total: Ended waits, whatever the outcome.
        wait_seconds_total: Seconds of all ended waits together.
        triggers_fired_total: Runs of threshold callbacks.
        triggers_failed_total: Runs of threshold callbacks that raised an error.
        turns_passed_on_total: Consumers' turns that passed on for lack of messages.
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
    """Callback with which a Reservation reports changes of its bytes to the controller."""

    def __call__(self, delta_bytes: int, *, ended: bool = False) -> None:
        """Count a reservation's change by ``delta_bytes``, and its end if ``ended``."""


def check_size(size: int) -> None:
    """Raise ValueError if a size in bytes is negative, as it would lower usage."""
    if size < 0:
        raise ValueError(f"A reservation cannot be negative: {size} bytes")


class Reservation:
    """Reserved bytes, held until released; ``with`` releases at the end of the block.

    A reservation has exactly one owner: the send operation, the received message, the open batch.
    The owner releases when its own work is over, regardless of the state of the user's future, and
    before it completes the future, so that a send from the future's callback finds the released
    memory.

    Source: none upstream, where callers pass plain numbers.
    """

    __slots__ = ("_books", "_released", "_size")

    def __init__(self, size: int, books: UsageChanged) -> None:
        self._size = size
        self._books = books
        self._released = False

    @property
    def size(self) -> int:
        """Number of reserved bytes; 0 after release."""
        return self._size

    @property
    def released(self) -> bool:
        """True after release; a reservation of 0 bytes is live until released."""
        return self._released

    def resize(self, size: int) -> None:
        """Change the reserved bytes: growing never waits, shrinking may admit waiting requests.

        Raises:
            ValueError: ``size`` is negative.
            RuntimeError: The reservation was released.

        Source: BatchMessageContainerImpl, which reserves its buffer's growth by force.
        """
        check_size(size)
        if self._released:
            raise RuntimeError("the reservation was released")
        # The size is set first, since callbacks of the change may read it.
        before, self._size = self._size, size
        self._books(size - before)

    def adjust(self, delta_bytes: int) -> None:
        """Change the reserved bytes by ``delta_bytes``, which may be negative.

        Raises as :meth:`resize`.
        """
        size = self._size + delta_bytes
        if size < 0 or self._released:
            self.resize(size)
        self._size = size
        self._books(delta_bytes)

    def release(self) -> None:
        """Release all bytes and grant waiting requests; idempotent."""
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
    """A request for memory: granted, waiting, or ended with an error."""

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
        """True if the waiting task was cancelled, even if it has not run since."""
        return self._future is not None and self._future.cancelled()

    def result(self) -> Reservation:
        """Return the reservation of a done request, or raise its error."""
        if self.error is not None:
            raise raised_anew(self.error)
        if self.reservation is None:
            raise RuntimeError("the request is still waiting")
        return self.reservation

    async def wait(self) -> None:
        """Wait until the request is granted or refused; for a single caller."""
        if not self.done:
            self._future = asyncio.get_running_loop().create_future()
            await self._future

    def settle(self, reservation: Reservation | None, error: MemoryReserveError | None) -> None:
        """Record a granted or refused request, and wake its task; called by the controller."""
        self.reservation, self.error = reservation, error
        if self.timer is not None:
            self.timer.cancel()
        if self._future is not None and not self._future.done():
            self._future.set_result(None)
