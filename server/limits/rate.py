"""Rate limit with bursts of up to a second's requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from limiter.token_bucket import TokenBucket

if TYPE_CHECKING:
    from limiter.clock import Clock


class Rate:
    """Requests per second; unused requests are kept for a second.

    Source: upstream limits HTTP requests by Guava's RateLimiter, which after a pause admits a
    single request beyond its rate, and makes the next wait. So does this class.
    """

    def __init__(self, a_second: float, clock: Clock) -> None:
        self._clock = clock
        self._kept = TokenBucket(a_second, a_second, clock.now())

    def take(self) -> bool:
        """Count a request if it is within the rate; return False otherwise."""
        if self._kept.refill(self._clock.now()) < 0:
            return False
        self._kept.tokens -= 1
        return True

    def give_back(self) -> None:
        """Uncount a request."""
        self._kept.tokens += 1
