"""A timer of an object, which runs at most once at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from limiter.clock import Clock, TimerHandle


class Timer:
    """A timer that an object starts again and again, never twice at the same time."""

    __slots__ = ("_clock", "_handle")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._handle: TimerHandle | None = None

    @property
    def runs(self) -> bool:
        """True from ``start`` until the call of its function, or until ``cancel``."""
        return self._handle is not None

    def start(self, seconds: float, then: Callable[[], object]) -> None:
        """Call a function after the given time; do nothing if the timer runs already."""
        if self._handle is None:
            self._handle = self._clock.call_at(self._clock.now() + seconds, self._ended, then)

    def _ended(self, then: Callable[[], object]) -> None:
        self._handle = None
        then()

    def cancel(self) -> None:
        """Stop the timer if it runs; its function is not called."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
