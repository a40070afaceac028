"""A clock that tests move ahead of real time; its timers fire in order of their due times.

With faults enabled messages, topics, policies and tokens follow this clock. Timers of connections
and permits stay on the event loop's clock.
"""

from __future__ import annotations

import asyncio
import heapq
from itertools import count
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from limiter.clock import clock_sleep, wake

if TYPE_CHECKING:
    from collections.abc import Callable

    from limiter.clock import Clock, TimerHandle

TIME_PATTERN = r"^([0-9]{1,9}(?:\.[0-9]{1,3})?)(ms|s|m|h|d)$"
"""A time in a request: ``90s``, ``5m``, ``1h``, ``2d``."""
WORK_SECONDS = 10.0
"""Longest wait for a periodic task to sleep again, before the clock moves on without it."""
_TURNS, _LOOK_SECONDS = 1_000, 0.001
"""Event-loop iterations spent waiting for a task without a pause, and the pause from then on."""
_FEWEST = 64


class _Timer:
    """A timer of the moved clock, with the task that sleeps on it, if any."""

    __slots__ = ("args", "callback", "sleeper")

    def __init__(self, callback: Callable[..., object] | None, args: tuple[object, ...]) -> None:
        self.callback = callback
        self.args = args
        self.sleeper = asyncio.current_task() if callback is wake else None

    def cancel(self) -> None:
        """Disarm the timer; a no-op after it fired."""
        self.callback, self.args = None, ()

    def fire(self) -> None:
        """Call back in the next event-loop iteration, where an error affects no other timer."""
        callback, args = self.callback, self.args
        self.cancel()
        if callback is not None:
            asyncio.get_running_loop().call_soon(callback, *args)


class MovedClock:
    """A clock that is ahead of another clock by the time that tests have added.

    Mutable state: a heap of armed timers, of which the first is armed at the other clock. Disarmed
    timers leave the heap when it has doubled.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead = 0.0
        self._numbers = count()
        self._timers: list[tuple[float, int, _Timer]] = []
        self._slept: WeakKeyDictionary[asyncio.Task[object], int] = WeakKeyDictionary()
        self._most = _FEWEST
        self._first: TimerHandle | None = None
        self._moving = asyncio.Lock()

    def now(self) -> float:
        """Return the moved monotonic time in seconds."""
        return self._clock.now() + self._ahead

    def wall_ms(self) -> int:
        """Return the moved wall-clock time, in milliseconds since 1970."""
        return self._clock.wall_ms() + round(1000 * self._ahead)

    @property
    def ahead_seconds(self) -> float:
        """The number of seconds by which the clock is ahead of the real clock."""
        return self._ahead

    def call_at(self, when: float, callback: Callable[..., object], *args: object) -> TimerHandle:
        """Schedule a callback at a time of this clock; the returned timer can be cancelled."""
        timer, number = _Timer(callback, args), next(self._numbers)
        if len(self._timers) >= self._most:
            self._timers = [each for each in self._timers if each[2].callback is not None]
            heapq.heapify(self._timers)
            self._most = max(_FEWEST, 2 * len(self._timers))
        heapq.heappush(self._timers, (when, number, timer))
        if timer.sleeper is not None:
            self._slept[timer.sleeper] = number
        if self._timers[0][2] is timer and not self._moving.locked():
            self._arm()
        return timer

    async def advance(self, seconds: float) -> None:
        """Move the clock ahead, firing the due timers in order, each at its own time.

        A periodic task ends its work before time goes on. Concurrent calls are one after the other.
        """
        async with self._moving:
            ahead = self._ahead + seconds
            try:
                while (due := self._next()) is not None and due[0] <= self._clock.now() + ahead:
                    self._ahead += max(0.0, due[0] - self.now())
                    await self._fire()
                self._ahead = ahead
            finally:  # A cancelled move ends where it is.
                self._arm()

    async def _fire(self) -> None:
        """Fire the earliest timer, and wait until the task that it woke sleeps again."""
        _, number, timer = heapq.heappop(self._timers)
        sleeper, until = timer.sleeper, self._clock.now() + WORK_SECONDS
        timer.fire()
        for turn in count():
            await (asyncio.sleep(0) if turn < _TURNS else clock_sleep(self._clock, _LOOK_SECONDS))
            sleeps = sleeper is None or sleeper.done() or self._slept.get(sleeper, 0) > number
            if sleeps or self._clock.now() >= until:
                return

    def _next(self) -> tuple[float, int, _Timer] | None:
        while self._timers and self._timers[0][2].callback is None:
            heapq.heappop(self._timers)
        return self._timers[0] if self._timers else None

    def _arm(self) -> None:
        if self._first is not None:
            self._first.cancel()
        due = self._next()
        self._first = due and self._clock.call_at(due[0] - self._ahead, self._look)

    def _look(self) -> None:
        """Fire the timers that became due as real time passed."""
        if self._moving.locked():
            return
        while (due := self._next()) is not None and due[0] <= self.now():
            heapq.heappop(self._timers)
            due[2].fire()
        self._arm()
