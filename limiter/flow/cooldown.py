"""A rate limit for a connection in the seconds after its reading resumed (PIP-434).

Two sets of keys configure it: the released keys (permits per period, for a number of milliseconds)
and the proposal's (a rate per second, for a number of seconds).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from limiter.clock import Clock


@dataclass(frozen=True, slots=True)
class CooldownRules:
    """The rate, and its duration after a resume.

    Attributes:
        permits: Commands of a period (pulsarChannelPauseReceivingCooldownRateLimitPermits).
        period_seconds: ...RateLimitPeriodMs.
        window_seconds: pulsarChannelPauseReceivingCooldownMs; 0 or less: no limit.
    """

    permits: int = 5
    period_seconds: float = 0.010
    window_seconds: float = 5.0

    @property
    def limits(self) -> bool:
        """True if a limit is set."""
        return self.window_seconds > 0


class TimedRateLimiter:
    """Permits for each period while a window is open; unlimited outside of the window.

    For one event loop. A period begins with the first request after the previous period; unused
    permits are lost. Opening the window refills nothing.

    Source: upstream TimedSingleThreadRateLimiter.
    Differs: the clock is monotonic.
    """

    def __init__(self, permits: int, period_seconds: float, clock: Clock) -> None:
        self.permits = permits
        self.period_seconds = period_seconds
        self.remaining = permits
        self._clock = clock
        self._period_began = clock.now()
        self._window_ends: float | None = None

    def open_window(self, seconds: float) -> None:
        """Limit the rate for ``seconds``; 0 or less closes the window."""
        self._window_ends = self._clock.now() + seconds if seconds > 0 else None

    def acquire(self, permits: int) -> int:
        """Return the granted part of ``permits``: all, some or none; never waits."""
        if permits < 0:
            return 0
        if self._window_ends is None:
            return permits
        now = self._clock.now()
        if now > self._window_ends:
            return permits
        if now > self._period_began + self.period_seconds:
            self.remaining = self.permits
            self._period_began = now
        granted = min(permits, self.remaining)
        self.remaining -= granted
        return granted
