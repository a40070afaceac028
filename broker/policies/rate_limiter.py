"""Limits on rates: of published messages, of dispatched messages, and of subscriptions."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

from limiter.token_bucket import TokenBucket

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.policies.effective import Rate
    from limiter.clock import Clock

DISPATCH_WAIT_SECONDS = 1.0
"""Delay before a throttled dispatcher retries."""
_ROUNDING = 1e-6
MOST_CONSUMERS = 10_000
"""Most consumers of a topic whose subscribing is counted."""


class RateLimiter:
    """A limit on messages and bytes per period, with a token bucket for each of the two.

    A batch may overdraw the buckets: later messages wait until the debt is repaid.

    Args:
        rate: The limit.
        clock: The time.
        least_wait_seconds: Shortest wait: a dispatcher pauses for a second, so a rate of 5 sends
            five messages each second rather than a message each 0.2 s.
        published: Returns messages and bytes per second to which a relative limit is added.

    Source: upstream AsyncTokenBucket, DispatchRateLimiterAsyncTokenBucketImpl.
    """

    def __init__(
        self,
        rate: Rate,
        clock: Clock,
        least_wait_seconds: float = DISPATCH_WAIT_SECONDS,
        published: Callable[[], tuple[float, float]] = lambda: (0, 0),
    ) -> None:
        self._clock = clock
        self._least_wait = least_wait_seconds
        self._published = published
        self.change(rate)

    def change(self, rate: Rate) -> None:
        """Replace the limit, with full token buckets."""
        now = self._clock.now()
        self._rate = rate
        self._messages = _bucket(rate.messages, rate.period_seconds, now)
        self._bytes = _bucket(rate.size_bytes, rate.period_seconds, now)

    @property
    def limited(self) -> bool:
        """True if the rate of messages or bytes is limited."""
        return self._messages is not None or self._bytes is not None

    def available(self) -> tuple[int, int]:
        """Return the numbers of messages and bytes that may be sent now; huge if unlimited."""
        now = self._clock.now()
        if self._rate.relative:
            self._follow(now)
        return _whole(self._messages, now), _whole(self._bytes, now)

    def _follow(self, now: float) -> None:
        """Set a relative limit on top of the present publish rates; tokens are kept."""
        messages, size_bytes = self._published()
        for bucket, most in (
            (self._messages, self._rate.messages + int(messages)),
            (self._bytes, self._rate.size_bytes + int(size_bytes)),
        ):
            if bucket is not None and bucket.most != most:
                bucket.refill(now)
                bucket.most, bucket.a_second = most, _a_second(most, self._rate.period_seconds)

    def take(self, messages: int, size_bytes: int) -> None:
        """Take tokens for messages and bytes from the buckets, even if they have too few."""
        now = self._clock.now()
        for bucket, count in ((self._messages, messages), (self._bytes, size_bytes)):
            if bucket is not None:
                bucket.tokens = bucket.refill(now) - count

    def seconds_until_more(self) -> float:
        """Return the seconds to wait before anything may be sent; 0 if it may be sent now."""
        now, wait = self._clock.now(), 0.0
        for bucket in (self._messages, self._bytes):
            if bucket is not None and bucket.refill(now) < 1 - _ROUNDING:
                wait = max(wait, bucket.seconds_until(1))
        return max(wait, self._least_wait) if wait else 0.0


def _bucket(most: int, period_seconds: int, now: float) -> TokenBucket | None:
    return TokenBucket(_a_second(most, period_seconds), most, now) if most > 0 else None


def _a_second(most: int, period_seconds: int) -> float:
    return most / max(period_seconds, 1)


def _whole(bucket: TokenBucket | None, now: float) -> int:
    return sys.maxsize if bucket is None else max(0, int(bucket.refill(now) + _ROUNDING))


class ConsumerIdentifier(NamedTuple):
    """A consumer's identity across reconnects: the client's host, consumer name and id."""

    host: str
    name: str
    consumer_id: int


class SubscribeRateLimiter:
    """A limit on how often, per period, each consumer may subscribe to a topic.

    Bound: MOST_CONSUMERS; the consumer with the oldest subscription is evicted and begins anew.

    Args:
        rate: The limit; its messages are subscriptions.
        clock: The time.

    Source: upstream SubscribeRateLimiter.
    """

    def __init__(self, rate: Rate, clock: Clock) -> None:
        self._clock = clock
        self._rate = rate
        self._buckets: dict[ConsumerIdentifier, TokenBucket] = {}

    def __len__(self) -> int:
        return len(self._buckets)

    def change(self, rate: Rate) -> None:
        """Replace the limit, with full token buckets; a no-op if the limit is the same."""
        if rate != self._rate:
            self._rate = rate
            self._buckets.clear()

    def take(self, consumer: ConsumerIdentifier) -> bool:
        """Count a consumer's attempt to subscribe; return False if it exceeds the limit.

        An attempt above the limit is not counted.
        """
        rate, now = self._rate, self._clock.now()
        if rate.messages <= 0 or rate.period_seconds <= 0:
            return True
        bucket = self._buckets.pop(consumer, None)
        if bucket is None:
            bucket = TokenBucket(rate.messages / rate.period_seconds, rate.messages, now)
            if len(self._buckets) >= MOST_CONSUMERS:
                del self._buckets[next(iter(self._buckets))]
        self._buckets[consumer] = bucket
        if not _whole(bucket, now):
            return False
        bucket.tokens -= 1
        return True
