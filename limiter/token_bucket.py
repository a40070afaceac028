"""Token buckets, the base of all rate limits: tokens accrue evenly up to a capacity."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from limiter.clock import Clock


class TokenBucket:
    """The number of tokens at a moment. May be overdrawn: later tokens repay the debt.

    Args:
        a_second: Tokens accrued in a second.
        most: Capacity, and the first tokens.
        now: The clock's current time.

    Attributes:
        tokens: The tokens at the last refill; takers subtract.
    """

    __slots__ = ("_since", "a_second", "most", "tokens")

    def __init__(self, a_second: float, most: float, now: float) -> None:
        self.a_second = a_second
        self.most = most
        self.tokens = most
        self._since = now

    def refill(self, now: float) -> float:
        """Return the tokens now."""
        earned = max(0.0, now - self._since) * self.a_second
        self.tokens = min(self.most, self.tokens + earned)
        self._since = now
        return self.tokens

    def seconds_until(self, tokens: float) -> float:
        """Return the time from the last refill until ``tokens`` are there; may be negative."""
        return (tokens - self.tokens) / self.a_second


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
