"""Statistics of messages: counters since loading, and rates of the last period."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from operator import sub
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

SIZE_BUCKETS = {
    "128": 128,
    "512": 512,
    "1_kb": 1024,
    "2_kb": 2 * 1024,
    "4_kb": 4 * 1024,
    "16_kb": 16 * 1024,
    "100_kb": 100 * 1024,
    "1_mb": 1024 * 1024,
}
"""The largest entry of each bucket in bytes, by suffix of the metric (pulsar_entry_size_le_...)."""
LATENCY_BUCKETS_MS = {
    "0_5": 0.5,
    "1": 1.0,
    "5": 5.0,
    "10": 10.0,
    "20": 20.0,
    "50": 50.0,
    "100": 100.0,
    "200": 200.0,
    "1000": 1_000.0,
}
"""The longest time from SEND until stored of each bucket, by suffix of the metric."""


class PublishStatistics:
    """Totals and rates of the messages published by a producer, or by all producers of a topic.

    Attributes:
        messages: Messages published since the producer was opened or the topic was loaded
            (msgInCounter).
        size_bytes: Bytes of these messages, as stored (bytesInCounter).
        chunks: Chunks of chunked messages.
        message_rate: Messages per second in the last period (msgRateIn).
        byte_rate: Bytes per second in the last period (msgThroughputIn).
        chunked_message_rate: Chunks per second in the last period (chunkedMessageRate).
        average_size: Bytes per message in the last period (averageMsgSize).
        usual: Messages and bytes per second, rising at once with the rates of a period, and falling
            halfway to them: what upstream adds to a dispatch rate relative to the publish rate.
    """

    def __init__(self) -> None:
        self.messages = self.size_bytes = self.chunks = 0
        self.message_rate = self.byte_rate = self.chunked_message_rate = 0.0
        self.average_size = 0.0
        self.usual = (0.0, 0.0)
        self._seen_messages = self._seen_bytes = self._seen_chunked = 0

    def period_ended(self, seconds: float) -> None:
        """Compute the rates of the statistics period that ends now (statsUpdateFrequencyInSecs)."""
        messages, size = self.messages - self._seen_messages, self.size_bytes - self._seen_bytes
        chunked = self.chunks - self._seen_chunked
        self._seen_messages, self._seen_bytes = self.messages, self.size_bytes
        self._seen_chunked = self.chunks
        self.message_rate, self.byte_rate = messages / seconds, size / seconds
        self.chunked_message_rate = chunked / seconds
        self.average_size = size / messages if messages else 0.0
        rates = zip((self.message_rate, self.byte_rate), self.usual, strict=True)
        messages_now, bytes_now = (max(rate, (rate + usual) / 2) for rate, usual in rates)
        self.usual = (messages_now, bytes_now)


class Counters(NamedTuple):
    """Totals, or rates per second, of the messages that consumers received and acknowledged."""

    messages_out: float = 0
    bytes_out: float = 0
    redelivered: float = 0
    acknowledged: float = 0


NOTHING = Counters()


class Rates:
    """Rates per second of consumers' messages over the last complete statistics period.

    0 in the first period, as upstream.

    Attributes:
        current: The rates.
    """

    __slots__ = ("_counted", "current")

    def __init__(self) -> None:
        self._counted = NOTHING
        self.current = NOTHING

    def update(self, counted: Counters, seconds: float) -> None:
        """Compute the rates of the period that ends now, given the totals at its end."""
        before, self._counted = self._counted, counted
        self.current = Counters(
            *((now - then) / seconds for now, then in zip(counted, before, strict=True))
        )


class Histogram:
    """A histogram of values with the buckets of Pulsar's metrics.

    Attributes:
        counts: The number of values in each bucket, then the number of values above all buckets.
        total: The sum of all values.
        last_counts, last_total: Counts and sum of the values added in the last period.

    Args:
        bounds: The largest value of each bucket, in order.
    """

    def __init__(self, bounds: Iterable[float]) -> None:
        self._bounds = tuple(bounds)
        self.counts = [0] * (len(self._bounds) + 1)
        self.total: float = 0
        self.last_counts = self._seen_counts = tuple(self.counts)
        self.last_total: float = 0
        self._seen_total: float = 0

    def add(self, value: float) -> None:
        """Count a value in its bucket."""
        self.counts[bisect_left(self._bounds, value)] += 1
        self.total += value

    def add_all(self, other: Histogram) -> None:
        """Add the counts of another histogram that has the same buckets."""
        for bucket, count in enumerate(other.counts):
            self.counts[bucket] += count
        self.total += other.total

    def period_ended(self) -> None:
        """Store the counts of the statistics period that ends now (statsUpdateFrequencyInSecs)."""
        counts = tuple(self.counts)
        self.last_counts = tuple(map(sub, counts, self._seen_counts))
        self.last_total = self.total - self._seen_total
        self._seen_counts, self._seen_total = counts, self.total

    @property
    def count(self) -> int:
        """The number of values counted in all buckets."""
        return sum(self.counts)

    def quantile(self, part: float) -> float:
        """Return the upper bound of the bucket that contains a quantile; NaN without values."""
        count = self.count
        if not count:
            return float("nan")
        reached = zip(accumulate(self.counts), self._bounds, strict=False)
        return next(
            (bound for seen, bound in reached if seen and seen >= part * count), float("inf")
        )
