"""Simulated time: a clock that jumps from one scheduled event to the next.

This module does not model a limiter. A simulation creates an ``AsyncSemaphore`` with this clock,
calls ``request`` and ``request_update``, and then ``release``. It makes the same decisions in the
same order as a server, but 25 seconds pass instantly and every run is repeatable.
"""

from __future__ import annotations

import heapq
from enum import IntEnum
from itertools import count
from types import NoneType
from typing import TYPE_CHECKING

from limiter.admission.rules import AdmissionPolicy
from limiter.errors import (
    PermitAcquireError,
    PermitAcquireQueueFullError,
    PermitAcquireStalledError,
    PermitAcquireTimeoutError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from limiter.admission.rules import AdmissionRules
    from limiter.permits.account import Waiter
    from limiter.permits.permit import Permit
    from limiter.semaphore.async_semaphore import AsyncSemaphore


class Ending(IntEnum):
    """The possible outcomes of a request, as numbers so that arrays of outcomes are small."""

    COMPLETED = 0
    TIMED_OUT = 1
    QUEUE_FULL = 2
    STALLED = 3


ENDINGS: dict[type[object], Ending] = {
    NoneType: Ending.COMPLETED,
    PermitAcquireTimeoutError: Ending.TIMED_OUT,
    PermitAcquireQueueFullError: Ending.QUEUE_FULL,
    PermitAcquireStalledError: Ending.STALLED,
}


class Event:
    """A callback scheduled at a moment of simulated time, which can be cancelled."""

    __slots__ = ("args", "callback")

    def __init__(self, callback: Callable[..., object], args: tuple[object, ...]) -> None:
        self.callback: Callable[..., object] | None = callback
        self.args = args

    def cancel(self) -> None:
        """Cancel the callback; no effect after it was called."""
        self.callback = None
        self.args = ()


class VirtualClock:
    """A ``limiter.clock.Clock`` whose time is the due time of the event that it runs.

    Events that are due at the same time run in the order in which they were scheduled. Units:
    seconds from 0.
    """

    def __init__(self) -> None:
        self._now = 0.0
        self._numbers = count()
        self._events: list[tuple[float, int, Event]] = []

    def now(self) -> float:
        """Return the seconds since the simulation began."""
        return self._now

    def wall_ms(self) -> int:
        """Return milliseconds since 1970, as if the simulation had begun in 1970."""
        return round(self.now() * 1000)

    def call_at(self, when: float, callback: Callable[..., object], *args: object) -> Event:
        """Schedule ``callback(*args)`` at the time ``when``, or next if that time has passed."""
        event = Event(callback, args)
        heapq.heappush(self._events, (max(when, self._now), next(self._numbers), event))
        return event

    def run(self) -> None:
        """Run all scheduled events in order, until none is left."""
        while self._events:
            when, _, event = heapq.heappop(self._events)
            if event.callback is not None:
                self._now = when
                event.callback(*event.args)


class LimiterFaultError(AssertionError):
    """The limiter has a bug: it lost a permit or a waiting request, or exceeded its limit."""


def ask(
    request: Callable[[], Waiter], then: Callable[[Permit | None, Exception | None], object]
) -> None:
    """Request a permit, and call ``then`` with the permit or with the error of the refusal.

    ``then`` is called at once if the decision is immediate, and otherwise when the wait ends.
    """
    try:
        waiter = request()
    except PermitAcquireError as error:
        then(None, error)
    else:
        waiter.on_done(lambda: then(waiter.permit, waiter.error))


def ending_of(error: Exception | None) -> Ending:
    """Return the outcome of a request, given its error; None means that it was completed."""
    return ENDINGS[type(error)]


def require_sound(semaphore: AsyncSemaphore, rules: AdmissionRules) -> None:
    """Check that all permits are released, no request waits, and the limit was never exceeded.

    Raises:
        LimiterFaultError: A check failed.
    """
    figures = semaphore.statistics()
    if figures.acquired_permits or figures.queue_size:
        raise LimiterFaultError(
            f"{figures.acquired_permits} permits are held and {figures.queue_size} requests wait "
            "although everybody has left"
        )
    bound = figures.max_permits
    if rules.policy is AdmissionPolicy.FAIR:
        bound += rules.overdraft_max(figures.max_permits)
    if figures.high_water_permits > bound:
        raise LimiterFaultError(
            f"{figures.high_water_permits} permits were held at once; the bound is {bound}"
        )
