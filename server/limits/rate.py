"""Rate limit with bursts of up to a second's requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from limiter.clock import Clock


class Rate:
    """Requests per second; unused requests are kept for a second.

    Source: upstream limits HTTP requests by Guava's RateLimiter, which after a pause admits a
    single request beyond its rate, and makes the next wait. So does this class.
    """

    def __init__(self, a_second: float, clock: Clock) -> None:
        self._a_second = a_second
        self._clock = clock
        self._kept = a_second
        self._at = clock.now()

    def take(self) -> bool:
        """Count a request if it is within the rate; return False otherwise."""
        now = self._clock.now()
        self._kept = min(self._a_second, self._kept + (now - self._at) * self._a_second)
        self._at = now
        if self._kept < 0:
            return False
        self._kept -= 1
        return True

    def give_back(self) -> None:
        """Uncount a request."""
        self._kept += 1
