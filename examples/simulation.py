"""Virtual time: a clock that jumps from event to event and drives the real limiter's code.

Nothing here models a limiter. A simulation makes an ``AsyncSemaphore`` with this clock, asks it
through ``request`` and ``request_update``, and gives back through ``release``: the same decisions,
in the same order, as in a server, but 25 seconds pass at once and every run can be repeated.
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
    """The end of a request; a number, so that a hundred thousand of them are an array."""

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
    """A callback at a moment of virtual time; as a ``TimerHandle`` it can be disarmed."""

    __slots__ = ("args", "callback")

    def __init__(self, callback: Callable[..., object], args: tuple[object, ...]) -> None:
        self.callback: Callable[..., object] | None = callback
        self.args = args

    def cancel(self) -> None:
        """Disarm the event; harmless after it happened."""
        self.callback = None
        self.args = ()


class VirtualClock:
    """A ``limiter.clock.Clock`` whose time is the moment of the event that happens now.

    Events of one moment happen in the order in which they were armed. Units: seconds from 0.
    """

    def __init__(self) -> None:
        self._now = 0.0
        self._numbers = count()
        self._events: list[tuple[float, int, Event]] = []

    def now(self) -> float:
        """Return the virtual seconds since the start."""
        return self._now

    def wall_ms(self) -> int:
        """Return milliseconds since 1970, as if the simulation had begun then."""
        return round(self.now() * 1000)

    def call_at(self, when: float, callback: Callable[..., object], *args: object) -> Event:
        """Let ``callback(*args)`` happen at ``when``; what is past already happens next."""
        event = Event(callback, args)
        heapq.heappush(self._events, (max(when, self._now), next(self._numbers), event))
        return event

    def run(self) -> None:
        """Let everything happen, in order, until nothing is left."""
        while self._events:
            when, _, event = heapq.heappop(self._events)
            if event.callback is not None:
                self._now = when
                event.callback(*event.args)


class LimiterFaultError(AssertionError):
    """The limiter lost something, or granted more than it may: a fault to report."""


def ask(
    request: Callable[[], Waiter], then: Callable[[Permit | None, Exception | None], object]
) -> None:
    """Ask for a permit and call ``then`` with it, or with the reason why there is none.

    That happens at once for what is granted or refused at once, and later for what has to wait.
    """
    try:
        waiter = request()
    except PermitAcquireError as error:
        then(None, error)
    else:
        waiter.on_done(lambda: then(waiter.permit, waiter.error))


def ending_of(error: Exception | None) -> Ending:
    """Return how a request ended; any other error is not one that a simulation brings about."""
    return ENDINGS[type(error)]


def require_sound(semaphore: AsyncSemaphore, rules: AdmissionRules) -> None:
    """Check at the end that nothing is held, nobody waits, and the limit was kept.

    Raises:
        LimiterFaultError: It is not so.
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
