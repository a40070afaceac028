import asyncio
import heapq
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

_TICK_SECONDS = 0.01


class ManualTimer:
    def __init__(self, callback: Callable[..., object], args: tuple[object, ...]) -> None:
        self.callback = callback
        self.args = args
        self.cancelled = False

    def cancel(self) -> None:
        """Disarm the timer and drop its callback, as a loop's timer does."""
        self.cancelled = True
        self.callback, self.args = _nothing, ()


def _nothing() -> None:
    pass


class ManualClock:
    """Stands still until ``advance``; timers fire in order, each at its own moment."""

    def __init__(self, now: float = 1000.0) -> None:
        self._now = now
        self._ahead_ms = 0
        self._numbers = count()
        self._timers: list[tuple[float, int, ManualTimer]] = []

    def now(self) -> float:
        return self._now

    def wall_ms(self) -> int:
        """Return milliseconds since 1970, as if the clock had started then."""
        return round(self._now * 1000) + self._ahead_ms

    def set_wall(self, by_seconds: float) -> None:
        """Set the time of day by so much, ahead or back; timers do not notice."""
        self._ahead_ms += round(by_seconds * 1000)

    def call_at(self, when: float, callback: Callable[..., object], *args: object) -> ManualTimer:
        timer = ManualTimer(callback, args)
        heapq.heappush(self._timers, (when, next(self._numbers), timer))
        return timer

    def advance(self, seconds: float, late_seconds: float = 0.0) -> None:
        """Advance; each due timer fires ``late_seconds`` after its moment."""
        end = self._now + seconds
        while self._timers and self._timers[0][0] + late_seconds <= end:
            when, _, timer = heapq.heappop(self._timers)
            self._now = max(self._now, when + late_seconds)
            if not timer.cancelled:
                timer.callback(*timer.args)
        self._now = end

    def go_on(self) -> None:
        """Run freely from now on, until the event loop ends."""
        self.advance(_TICK_SECONDS)
        asyncio.get_running_loop().call_later(_TICK_SECONDS, self.go_on)


@contextmanager
def stands_until_an_error(clock: object) -> Iterator[None]:
    """Run a manual clock freely when a block fails: server drains wait for time."""
    try:
        yield
    except BaseException:
        if isinstance(clock, ManualClock):
            clock.go_on()
        raise
