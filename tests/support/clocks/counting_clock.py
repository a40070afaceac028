"""A manual clock that counts armed timers."""

from collections.abc import Callable

from tests.support.clocks.manual_clock import ManualClock, ManualTimer


class CountingClock(ManualClock):
    """A clock that counts its timers.

    Attributes:
        armed: Number of timers ever armed.
    """

    def __init__(self) -> None:
        super().__init__()
        self.armed = 0
        self._live: list[tuple[float, ManualTimer]] = []

    def call_at(self, when: float, callback: Callable[..., object], *args: object) -> ManualTimer:
        self.armed += 1
        timer = super().call_at(when, callback, *args)
        self._live.append((when, timer))
        return timer

    @property
    def live(self) -> int:
        """Number of timers that can still fire."""
        return sum(when > self.now() and not timer.cancelled for when, timer in self._live)
