"""Token buckets, the base of all rate limits: tokens accrue evenly up to a capacity."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from limiter.clock import Clock


class TokenBucket:
    """Token bucket that may be overdrawn: tokens that accrue later repay the debt.

    Args:
        a_second: Tokens accrued in a second.
        most: Capacity, and the initial number of tokens.
        now: The clock's current time.

    Attributes:
        tokens: Number of tokens at the last refill, less those used since.
    """

    __slots__ = ("_since", "a_second", "most", "tokens")

    def __init__(self, a_second: float, most: float, now: float) -> None:
        self.a_second = a_second
        self.most = most
        self.tokens = most
        self._since = now

    def refill(self, now: float) -> float:
        """Add the tokens accrued since the last refill, and return the current number of tokens."""
        earned = max(0.0, now - self._since) * self.a_second
        self.tokens = min(self.most, self.tokens + earned)
        self._since = now
        return self.tokens

    def seconds_until(self, tokens: float) -> float:
        """Return the seconds from the last refill to a number of ``tokens``; may be negative."""
        return (tokens - self.tokens) / self.a_second


class Rate:
    """Rate limit in requests per second, with bursts of up to one second's requests.

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
        """Undo the counting of a request."""
        self._kept.tokens += 1
