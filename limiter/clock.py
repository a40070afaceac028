"""Clock and timers, passed as a dependency: no other module reads a clock or arms a timer.

Deadlines go through a :class:`Clock`, so that 25 seconds pass in a microsecond in tests, on any
event loop (uvloop's own clock cannot be patched).
"""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable


class TimerHandle(Protocol):
    """A timer that calls its callback when due, unless disarmed."""

    def cancel(self) -> None:
        """Disarm the timer; no-op after the timer fired."""


class Clock(Protocol):
    """A monotonic clock with timers. Units: seconds."""

    def now(self) -> float:
        """Return monotonic seconds since an arbitrary moment."""

    def wall_ms(self) -> int:
        """Return milliseconds since 1970, as in messages; may go backwards."""

    def call_at(self, when: float, callback: Callable[..., object], *args: object) -> TimerHandle:
        """Call ``callback(*args)`` at the moment ``when`` of this clock."""


class LoopClock:
    """The running event loop's clock, used by every process outside tests."""

    def now(self) -> float:
        """Return the loop's monotonic time in seconds."""
        return asyncio.get_running_loop().time()

    def wall_ms(self) -> int:
        """Return the system's time in milliseconds since 1970."""
        return time.time_ns() // 1_000_000

    def call_at(self, when: float, callback: Callable[..., object], *args: object) -> TimerHandle:
        """Call ``callback(*args)`` at the moment ``when`` of the running loop's clock."""
        return asyncio.get_running_loop().call_at(when, callback, *args)


class Timer:
    """A timer of a clock that its owner arms again and again, for one callback at a time."""

    __slots__ = ("_clock", "_handle")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._handle: TimerHandle | None = None

    @property
    def armed(self) -> bool:
        """True while a callback is due."""
        return self._handle is not None

    def arm(self, seconds: float, callback: Callable[..., object], *args: object) -> None:
        """Call ``callback(*args)`` in ``seconds``; no-op while a callback is due."""
        if self._handle is None:
            self.after(seconds, callback, *args)

    def after(self, seconds: float, callback: Callable[..., object], *args: object) -> None:
        """Call ``callback(*args)`` in ``seconds``, instead of a callback that is due by now."""
        self.at(self._clock.now() + seconds, callback, *args)

    def at(self, when: float, callback: Callable[..., object], *args: object) -> None:
        """Call ``callback(*args)`` at the moment ``when``; see ``after``."""
        self.stop()
        self._handle = self._clock.call_at(when, self._fire, callback, *args)

    def stop(self) -> None:
        """Disarm the timer; may be called repeatedly."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _fire(self, callback: Callable[..., object], *args: object) -> None:
        self._handle = None
        callback(*args)


def elapsed_seconds() -> float:
    """Return seconds since the machine's boot, suspended time included.

    For deadlines that must hold even if the process was stopped: a loop's clock stands still within
    an event-loop iteration, and does not count while the machine sleeps.
    """
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


@asynccontextmanager
async def deadline(clock: Clock, seconds: float | None) -> AsyncIterator[None]:
    """Limit an ``async with`` block to ``seconds`` of ``clock``; None sets no limit.

    Raises:
        TimeoutError: The block did not end in time; its await was cancelled.
    """
    task = asyncio.current_task()
    earlier = task.cancelling() if task is not None else 0
    # asyncio's own timeout has no time here: ``clock`` decides when the timeout fires.
    scope = asyncio.timeout(None)  # noqa: TID251
    try:
        async with scope:
            timer = _arm(clock, seconds, scope)
            try:
                yield
            finally:
                if timer is not None:
                    timer.cancel()
    except asyncio.CancelledError:
        # Python 3.11.2 counts earlier cancellations, as a TaskGroup leaves one, against the scope.
        if task is not None and scope.expired() and task.cancelling() <= earlier:
            raise TimeoutError from None
        raise


def _arm(clock: Clock, seconds: float | None, scope: asyncio.Timeout) -> TimerHandle | None:
    if seconds is None:
        return None
    loop = asyncio.get_running_loop()
    return clock.call_at(clock.now() + seconds, lambda: scope.reschedule(loop.time()))


async def clock_sleep(clock: Clock, seconds: float) -> None:
    """Sleep for ``seconds`` of ``clock``."""
    woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    timer = clock.call_at(clock.now() + seconds, wake, woken)
    try:
        await woken
    finally:
        timer.cancel()


def wake(future: asyncio.Future[None]) -> None:
    """Wake the task that awaits ``future``; no-op if the future is done."""
    if not future.done():
        future.set_result(None)
