"""A rate that is not exceeded for long: a second's requests may come at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from limiter.clock import Clock


class Rate:
    """Requests a second; those that were not made are kept for a second.

    Source: upstream limits HTTP requests by Guava's RateLimiter: after a pause it lets one more
    pass than its rate, which the next one waits for. So does this.
    """

    def __init__(self, a_second: float, clock: Clock) -> None:
        self._a_second = a_second
        self._clock = clock
        self._kept = a_second
        self._at = clock.now()

    def take(self) -> bool:
        """Return whether a request may be made now, and count it then."""
        now = self._clock.now()
        self._kept = min(self._a_second, self._kept + (now - self._at) * self._a_second)
        self._at = now
        if self._kept < 0:
            return False
        self._kept -= 1
        return True

    def give_back(self) -> None:
        """Take back that a request was made."""
        self._kept += 1
