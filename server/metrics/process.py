"""Metrics of this process, read from the operating system and the event loop.

process_* come from prometheus_client's own collector, with the label ``cluster`` of every Pulsar
sample. The event loop's lag is the delay of a callback beyond its due time: above some 50 ms a
process answers all clients late.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from prometheus_client import ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from limiter.clock import Timer
from limiter.metrics.instruments import Buckets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from limiter.clock import Clock

LAG_INTERVAL_SECONDS = 0.1
LAG_BUCKETS_SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class ProcessMetrics(Collector):
    """Metrics of memory, processor time and open files, with the label ``cluster``."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._process = ProcessCollector(registry=None)

    def collect(self) -> Iterator[Metric]:
        """Yield the process's metrics from /proc; none on systems other than Linux."""
        for family in self._process.collect():
            yield _labelled(family, self._cluster)


class EventLoopLag:
    """Measures how late the event loop makes a timed call, as a histogram.

    The mutable state is the counts, the sum and the armed timer.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._counts = [0] * (len(LAG_BUCKETS_SECONDS) + 1)
        self._sum_seconds = 0.0
        self._timer = Timer(clock)

    def start(self) -> None:
        """Start measuring the event loop's lag, ten times a second."""
        due = self._clock.now() + LAG_INTERVAL_SECONDS
        self._timer.at(due, self._measure, due)

    def stop(self) -> None:
        """Stop measuring the event loop's lag; may be called repeatedly."""
        self._timer.stop()

    def buckets(self) -> Buckets:
        """Return the histogram of the event loop's measured lag."""
        return Buckets(map(str, LAG_BUCKETS_SECONDS), self._counts, self._sum_seconds)

    def _measure(self, due: float) -> None:
        lag_seconds = max(0.0, self._clock.now() - due)
        self._counts[bisect_left(LAG_BUCKETS_SECONDS, lag_seconds)] += 1
        self._sum_seconds += lag_seconds
        self.start()


def _labelled(family: Metric, cluster: str) -> Metric:
    labelled = Metric(family.name, family.documentation, family.type)
    labelled.samples = [
        sample._replace(labels={"cluster": cluster, **sample.labels}) for sample in family.samples
    ]
    return labelled
