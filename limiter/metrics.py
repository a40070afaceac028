"""PIP-442's twelve instruments, as the 26 samples that a real broker shows.

The limiter does not know this module: gauges are read from its ``statistics()`` when somebody
scrapes, waits arrive through ``observe``. prometheus_client's Summary has no quantiles, so the
families are built here, sample by sample.

Source: upstream TopicListMemoryLimiter; names, types and labels as recorded from Pulsar 4.2.4.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal, Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from limiter.clock import Clock, LoopClock
from limiter.dual import DualStatistics, LimitType
from limiter.permit import AcquireOutcome
from limiter.wait_times import WaitTimes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from limiter.permit import SemaphoreStatistics

QUANTILES = (0.5, 0.95, 0.99, 1.0)

MetricPrefix = Literal["pulsar_broker", "pulsar_proxy"]


class HasStatistics(Protocol):
    """A limiter, as far as metrics are concerned."""

    def statistics(self) -> DualStatistics:
        """Return a snapshot of both budgets."""


class TopicListMetrics(Collector):
    """The topic-list memory of one limiter, exported under ``<prefix>_topic_list_``.

    Args:
        prefix: ``pulsar_broker`` or ``pulsar_proxy``.
        cluster: The value of the label ``cluster``.
        limiter: Asked for its statistics at each scrape.
        clock: Rotates the windows of the quantiles.
        wall_clock: Seconds since 1970, for the ``_created`` samples.

    The mutable state is the waiting times and the counts of timeouts.
    """

    def __init__(
        self,
        prefix: MetricPrefix,
        cluster: str,
        limiter: HasStatistics,
        clock: Clock | None = None,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._prefix = f"{prefix}_topic_list"
        self._cluster = cluster
        self._limiter = limiter
        self._created_seconds = wall_clock()
        clock = clock or LoopClock()
        self._waits = {limit_type: WaitTimes(clock) for limit_type in LimitType}
        self._timeouts = dict.fromkeys(LimitType, 0)

    def observe(
        self, limit_type: LimitType, outcome: AcquireOutcome, waited_seconds: float
    ) -> None:
        """Take note of how one request for permits ended; the limiter's observer.

        A timeout is a wait and a timeout; whoever was refused, cancelled or turned away
        waited for nothing and is not counted.
        """
        if outcome is AcquireOutcome.TIMED_OUT:
            self._timeouts[limit_type] += 1
        elif outcome is not AcquireOutcome.GRANTED:
            return
        self._waits[limit_type].record(waited_seconds)

    def collect(self) -> Iterator[Metric]:
        """Read the limiter and return all families."""
        statistics = self._limiter.statistics()
        for limit_type, budget in (
            (LimitType.HEAP_MEMORY, statistics.heap),
            (LimitType.DIRECT_MEMORY, statistics.direct),
        ):
            yield from self._gauges(limit_type, budget)
            yield self._wait_summary(limit_type)
            yield self._timeout_counter(limit_type)
        yield self._high_water(statistics)

    def _gauges(self, limit_type: LimitType, budget: SemaphoreStatistics) -> Iterator[Metric]:
        kind = limit_type.value
        bounded = budget.max_permits > 0
        used_bytes = budget.acquired_permits if bounded else 0
        readings = (
            ("memory_used_bytes", f"Current {kind} memory used by topic listings", used_bytes),
            ("memory_limit_bytes", f"Configured {kind} memory limit", max(0, budget.max_permits)),
            ("queue_size", f"Current {kind} memory limiter queue size", budget.queue_size),
            (
                "queue_max_size",
                f"Maximum {kind} memory limiter queue size",
                budget.max_queue_size,
            ),
        )
        for name, documentation, value in readings:
            family = GaugeMetricFamily(
                f"{self._prefix}_{kind}_{name}", documentation, labels=["cluster"]
            )
            family.add_metric([self._cluster], value)
            yield family

    def _wait_summary(self, limit_type: LimitType) -> Metric:
        name = f"{self._prefix}_{limit_type.value}_wait_time_ms"
        waits = self._waits[limit_type]
        labels = {"cluster": self._cluster}
        family = Metric(name, f"Wait time for {limit_type.value} memory permits", "summary")
        for quantile, millis in zip(QUANTILES, waits.quantiles(QUANTILES), strict=True):
            family.add_sample(name, {**labels, "quantile": str(quantile)}, millis)
        family.add_sample(f"{name}_count", labels, waits.count)
        family.add_sample(f"{name}_sum", labels, waits.sum_millis)
        family.add_sample(f"{name}_created", labels, self._created_seconds)
        return family

    def _timeout_counter(self, limit_type: LimitType) -> Metric:
        kind = limit_type.value
        family = CounterMetricFamily(
            f"{self._prefix}_{kind}_timeout",
            f"Total {kind} memory permit timeouts",
            labels=["cluster"],
        )
        timeouts = self._timeouts[limit_type]
        family.add_metric([self._cluster], timeouts, created=self._created_seconds)
        return family

    def _high_water(self, statistics: DualStatistics) -> Metric:
        family = GaugeMetricFamily(
            "floodgate_topic_list_memory_high_water_bytes",
            "Most memory that topic listings ever held at once",
            labels=["cluster", "type"],
        )
        for kind, budget in (("heap", statistics.heap), ("direct", statistics.direct)):
            high_bytes = budget.high_water_permits if budget.max_permits > 0 else 0
            family.add_metric([self._cluster, kind], high_bytes)
        return family
