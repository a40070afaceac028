"""Limit on the bytes of messages held by a client: PIP-74's MemoryLimitController.

Producers reserve before they queue a message, and wait or fail at the limit; consumers reserve by
force for arrived messages, and shrink their receiver queues when a trigger fires. docs/limiter.md
maps the names to upstream's.

Kept: a request is admitted while usage is at or below the limit *before* the addition. Usage may
exceed the limit by a whole request, so a request larger than the limit is served as well.

Differs: a share of the limit is reserved for producers, regardless of prefetching; reservations are
objects, so that a second release is a no-op, usage is their sum and never negative; waiters are
served in order of arrival, bounded in number and time, and a release wakes only the waiters it
admits; a trigger may repeat while usage stays high, and its errors do not reach the caller; close
ends every wait.

Decisions are plain functions that run to completion on one event loop. Invariants: usage is the sum
of the live reservations; a waiter is either in the queue or done; a waiter exists only while usage
is above the limit, and the producers' part above their share. The rule ignores sizes: no head
blocks the queue.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING

from limiter.client_memory.errors import (
    MemoryBufferIsFullError,
    MemoryReserveCancelledError,
    MemoryReserveClosedError,
    MemoryReserveError,
    MemoryReserveQueueFullError,
    MemoryReserveTimeoutError,
)
from limiter.client_memory.prefetch import Prefetch
from limiter.client_memory.reservation import (
    MemoryLimitStatistics,
    MemoryWaiter,
    Reservation,
    ReserveOutcome,
    check_size,
)
from limiter.client_memory.triggers import MemoryTrigger, MemoryTriggers
from limiter.clock import Clock, LoopClock

if TYPE_CHECKING:
    from collections.abc import Callable

DEFAULT_LIMIT_BYTES = 64 * 1024 * 1024
DEFAULT_MAX_WAITERS = 10_000
DEFAULT_PRODUCER_SHARE = 0.25
"""The producers' share of the limit. Receiver queues grow up to 75 % of the limit (PIP-74), so
prefetching has no use for the rest."""
SHRINK_THRESHOLD = 0.95
"""The fraction of the limit at which consumers shrink their receiver queues."""


class MemoryLimitController:
    """Memory limit of a client, or of several clients that share it, on one event loop.

    Args:
        limit_bytes: The limit; 0 or less is unlimited, with usage still counted.
        max_waiters: Largest number of waiters at a time, at least 1; further callers are refused.
        clock: The source of time; None is the event loop's clock.
        observer: Called with each request's outcome and its seconds of waiting. Must not raise.
        producer_share: The fraction of the limit served to producers regardless of prefetching; 0
            for none, as upstream, where prefetched messages can stop producers.

    Attributes:
        prefetch: The consumers' part: prefetched bytes, promised bytes, and the waiting consumers.

    Raises:
        TypeError: ``limit_bytes`` is no whole number.
        ValueError: ``max_waiters`` is less than 1, or ``producer_share`` not from 0 up to 1.

    Source: PIP-74, MemoryLimitController.
    """

    def __init__(
        self,
        limit_bytes: int = DEFAULT_LIMIT_BYTES,
        max_waiters: int = DEFAULT_MAX_WAITERS,
        clock: Clock | None = None,
        observer: Callable[[ReserveOutcome, float], None] | None = None,
        producer_share: float = DEFAULT_PRODUCER_SHARE,
    ) -> None:
        if not isinstance(limit_bytes, int):
            raise TypeError(f"limit_bytes is a whole number of bytes, not {limit_bytes!r:.50}")
        if max_waiters < 1:
            raise ValueError(f"max_waiters is at least 1, not {max_waiters}")
        if not 0 <= producer_share <= 1:
            raise ValueError(f"producer_share is a fraction from 0 to 1, not {producer_share}")
        self._limit = limit_bytes
        self._max_waiters = max_waiters
        self._clock: Clock = clock or LoopClock()
        self._observer = observer
        self._usage = 0
        self._high_water = 0
        self._reservations = 0
        self._rejected = 0
        self._timeouts = 0
        self._waits = 0
        self._wait_seconds = 0.0
        self._waiters: OrderedDict[MemoryWaiter, None] = OrderedDict()
        self._triggers = MemoryTriggers(limit_bytes, self._clock, lambda: self._usage)
        # Without a share even a producer that holds nothing is not served above the limit.
        self._producer_bytes = int(limit_bytes * producer_share) if producer_share else -1
        self.prefetch = Prefetch(
            limit_bytes,
            limit_bytes - max(0, self._producer_bytes),
            self._clock,
            lambda: self._usage,
            self._grant_waiters,
        )
        self._closed = False

    def __repr__(self) -> str:
        return (
            f"<MemoryLimitController {self._usage}/{self._limit} bytes "
            f"with {len(self._waiters)} waiting>"
        )

    @property
    def limit_bytes(self) -> int:
        """The limit in bytes; 0 or less is unlimited."""
        return self._limit

    @property
    def is_memory_limited(self) -> bool:
        """True if a limit is set."""
        return self._limit > 0

    @property
    def current_usage(self) -> int:
        """Bytes reserved now: the sum of all live reservations."""
        return self._usage

    @property
    def current_usage_fraction(self) -> float:
        """Usage divided by the limit, 1.0 at the limit; 0.0 if unlimited."""
        return self._usage / self._limit if self.is_memory_limited else 0.0

    def statistics(self) -> MemoryLimitStatistics:
        """Return a snapshot of usage, waiting requests and counters."""
        prefetch = self.prefetch
        return MemoryLimitStatistics(
            limit_bytes=self._limit,
            usage_bytes=self._usage,
            prefetched_bytes=prefetch.arrived_bytes,
            promised_bytes=prefetch.entry_bytes + prefetch.more_bytes,
            high_water_bytes=self._high_water,
            waiters=len(self._waiters),
            oldest_waiter_seconds=self._oldest_waiter_seconds(),
            max_waiters=self._max_waiters,
            consumers_waiting=prefetch.waiting,
            reservations=self._reservations,
            rejected_total=self._rejected,
            timeouts_total=self._timeouts,
            waits_total=self._waits,
            wait_seconds_total=self._wait_seconds,
            triggers_fired_total=self._triggers.fired_total,
            triggers_failed_total=self._triggers.failed_total,
            turns_passed_on_total=prefetch.passed_on_total,
        )

    # -- reserving ----------------------------------------------------------------------------

    def try_reserve(self, size: int) -> Reservation | None:
        """Reserve ``size`` bytes if usage is at or below the limit; otherwise return None.

        Within the producers' share, prefetched bytes do not count.

        Raises:
            ValueError: ``size`` is negative.
            MemoryReserveClosedError: The controller was closed.

        Source: MemoryLimitController.tryReserveMemory.
        """
        if self._closed or size < 0:
            self._validate(size)
        if self._waiters or not self._allows_more():
            self._rejected += 1
            self._observe(ReserveOutcome.BUFFER_FULL, 0.0)
            return None
        return self._reserve_at_once(size, ReserveOutcome.RESERVED)

    def reserve_nowait(self, size: int) -> Reservation:
        """Reserve ``size`` bytes if usage is at or below the limit; otherwise raise.

        Raises:
            MemoryBufferIsFullError: Usage is above the limit.
            ValueError, MemoryReserveClosedError: As :meth:`try_reserve`.

        Source: ProducerImpl.canEnqueueRequest without blockIfQueueFull.
        """
        reservation = self.try_reserve(size)
        if reservation is None:
            raise MemoryBufferIsFullError(size, self._usage, self._limit)
        return reservation

    async def reserve(self, size: int, timeout_seconds: float | None = None) -> Reservation:
        """Reserve ``size`` bytes, waiting in the queue until the memory is granted.

        A cancelled caller holds nothing, even if the memory was granted in the same event-loop
        iteration.

        Args:
            size: Bytes, 0 or more; may exceed the limit.
            timeout_seconds: The longest wait; None waits without end, as upstream.

        Raises:
            ValueError: ``size`` is negative (immediately).
            MemoryReserveQueueFullError: The queue of waiters is full (immediately).
            MemoryReserveTimeoutError: Not granted in time.
            MemoryReserveClosedError: The controller is or was closed.

        Source: MemoryLimitController.reserveMemory, which parks the calling thread.
        """
        waiter = self.request(size, timeout_seconds)
        try:
            await waiter.wait()
        except asyncio.CancelledError:
            self.abandon(waiter)
            raise
        return waiter.result()

    def force_reserve(self, size: int) -> Reservation:
        """Reserve ``size`` bytes already in memory, regardless of usage, also after close.

        Raises:
            ValueError: ``size`` is negative.

        Source: MemoryLimitController.forceReserveMemory.
        """
        check_size(size)
        return self._reserve_at_once(size, ReserveOutcome.FORCED)

    def reserve_prefetched(self) -> Reservation:
        """Return a consumer's empty reservation, to be adjusted as messages arrive and leave.

        Its growth counts as prefetched, and never waits since the messages already exist.

        Source: MemoryLimitController.forceReserveMemory, called for each message.
        """
        self._reservations += 1
        return Reservation(0, self._change_prefetched)

    def register_trigger(
        self,
        callback: Callable[[], object],
        threshold: float = SHRINK_THRESHOLD,
        repeat_seconds: float | None = None,
    ) -> MemoryTrigger:
        """Register a callback that runs when usage rises to a fraction of the limit.

        The callback runs inside the reservation that crosses the threshold, after the reservation
        is counted. It may reserve, release and remove triggers, and is not called again while it
        runs. Its errors are logged and counted. Without a limit it is never called.

        Args:
            callback: A plain function; typically halves receiver queues.
            threshold: Fraction of the limit, above 0; the bytes are rounded down, to 1 at least.
            repeat_seconds: Repeat after this time while usage stays at the threshold. None: once
                for each crossing, as upstream.

        Raises:
            ValueError: ``threshold`` or ``repeat_seconds`` is not above 0.

        Source: MemoryLimitController.registerTrigger; 0.95 is PulsarClientImpl's.
        """
        return self._triggers.register(callback, threshold, repeat_seconds)

    def close(self) -> None:
        """Refuse all requests, waiting or new, and remove the triggers; idempotent.

        Held reservations can still be resized and released; arriving messages can still be forced
        in.
        """
        self._closed = True
        self._triggers.clear()
        while self._waiters:
            waiter, _ = self._waiters.popitem(last=False)
            self._refuse(waiter, MemoryReserveClosedError(), ReserveOutcome.CLOSED)

    # -- the same without awaiting --------------------------------------------------------------

    def request(self, size: int, timeout_seconds: float | None = None) -> MemoryWaiter:
        """Request memory without awaiting; the returned request may be granted already.

        Raises as :meth:`reserve`.
        """
        self._validate(size)
        waiter = MemoryWaiter(size)
        # A waiter exists although more is allowed only while a callback runs.
        if not self._waiters and self._allows_more():
            waiter.settle(self._reserve_at_once(size, ReserveOutcome.RESERVED), None)
        else:
            self._enqueue(waiter, timeout_seconds)
        return waiter

    def abandon(self, waiter: MemoryWaiter) -> None:
        """Drop a request whose caller has left, and release its reservation."""
        if waiter in self._waiters:
            del self._waiters[waiter]
            self._refuse(waiter, MemoryReserveCancelledError(), ReserveOutcome.CANCELLED)
        elif waiter.reservation is not None:
            waiter.reservation.release()

    # -- decisions ----------------------------------------------------------------------------

    def _validate(self, size: int) -> None:
        check_size(size)
        if self._closed:
            self._observe(ReserveOutcome.CLOSED, 0.0)
            raise MemoryReserveClosedError

    def _allows_more(self) -> bool:
        """Return True while usage and bytes promised to consumers are within the limit.

        A consumer's first promised entry does not count: it may exceed the limit.
        """
        usage, prefetch = self._usage, self.prefetch
        if self._limit <= 0 or usage + prefetch.more_bytes <= self._limit:
            return True
        return usage - prefetch.arrived_bytes <= self._producer_bytes

    def _reserve_at_once(self, size: int, outcome: ReserveOutcome) -> Reservation:
        reservation = Reservation(size, self._change)
        self._reservations += 1
        self._usage = usage = self._usage + size
        if usage > self._high_water:
            self._high_water = usage
        if self._observer is not None:
            self._observer(outcome, 0.0)
        if usage >= self._triggers.lowest_bytes:
            self._triggers.usage_rose(usage - size, usage)
        return reservation

    def _change(self, delta_bytes: int, *, ended: bool = False) -> None:
        if ended:
            self._reservations -= 1
        self._usage = usage = self._usage + delta_bytes
        if delta_bytes > 0:
            if usage > self._high_water:
                self._high_water = usage
            if usage >= self._triggers.lowest_bytes:
                self._triggers.usage_rose(usage - delta_bytes, usage)
            return
        if self._waiters:
            self._grant_waiters()
        if self.prefetch.waiting:
            self.prefetch.serve()

    def _change_prefetched(self, delta_bytes: int, *, ended: bool = False) -> None:
        self.prefetch.arrived_bytes += delta_bytes
        self._change(delta_bytes, ended=ended)

    def _enqueue(self, waiter: MemoryWaiter, timeout_seconds: float | None) -> None:
        waiting = len(self._waiters)
        if waiting >= self._max_waiters:
            self._rejected += 1
            self._observe(ReserveOutcome.QUEUE_FULL, 0.0)
            raise MemoryReserveQueueFullError(waiter.size, self._usage, self._limit, waiting)
        waiter.enqueued_at = self._clock.now()
        self._waiters[waiter] = None
        if timeout_seconds is not None:
            due = waiter.enqueued_at + timeout_seconds
            waiter.timer = self._clock.call_at(due, self._time_out, waiter)

    def _grant_waiters(self) -> None:
        """Grant waiting requests, oldest first, while usage is within the limit."""
        while self._waiters and self._allows_more():
            waiter, _ = self._waiters.popitem(last=False)
            if waiter.caller_left:
                self._refuse(waiter, MemoryReserveCancelledError(), ReserveOutcome.CANCELLED)
                continue
            self._reservations += 1
            self._usage = usage = self._usage + waiter.size
            self._high_water = max(self._high_water, usage)
            # Settle before notifying: memory released by a callback serves the next waiter.
            waiter.settle(Reservation(waiter.size, self._change), None)
            self._observe(ReserveOutcome.RESERVED, self._waited(waiter))
            self._triggers.usage_rose(usage - waiter.size, usage)

    def _time_out(self, waiter: MemoryWaiter) -> None:
        del self._waiters[waiter]
        self._timeouts += 1
        waited = self._clock.now() - waiter.enqueued_at
        self._refuse(waiter, MemoryReserveTimeoutError(waited), ReserveOutcome.TIMED_OUT)

    def _refuse(
        self, waiter: MemoryWaiter, error: MemoryReserveError, outcome: ReserveOutcome
    ) -> None:
        waiter.settle(None, error)
        self._observe(outcome, self._waited(waiter))

    def _waited(self, waiter: MemoryWaiter) -> float:
        """Count a wait that has ended, and return its length in seconds."""
        seconds = self._clock.now() - waiter.enqueued_at
        self._waits += 1
        self._wait_seconds += seconds
        return seconds

    def _oldest_waiter_seconds(self) -> float:
        for waiter in self._waiters:
            return self._clock.now() - waiter.enqueued_at
        return 0.0

    def _observe(self, outcome: ReserveOutcome, waited_seconds: float) -> None:
        if self._observer is not None:
            self._observer(outcome, waited_seconds)
