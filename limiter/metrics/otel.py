"""OpenTelemetry metrics of topic-list memory and of flow control.

Imported only when OpenTelemetry is enabled, since the import costs time and memory.

Source: upstream TopicListMemoryLimiter; names, kinds, units and descriptions as released.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from limiter.extras import extra
from limiter.metrics.instruments import Kind, SourceT, counter
from limiter.metrics.topic_list import OWN_INSTRUMENTS, PULSAR_INSTRUMENTS, budgets_now

with extra("opentelemetry"):
    from opentelemetry.metrics import Observation
    from opentelemetry.sdk.metrics.export import (
        AggregationTemporality,
        ExponentialHistogram,
        ExponentialHistogramDataPoint,
        Histogram,
        HistogramDataPoint,
    )

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from opentelemetry.metrics import CallbackOptions, Meter
    from opentelemetry.metrics import Histogram as HistogramInstrument
    from opentelemetry.sdk.metrics.export import (
        Metric,
        MetricsData,
        ResourceMetrics,
        ScopeMetrics,
    )

    from limiter.flow.totals import FlowTotals
    from limiter.memory.dual_limiter import LimitType
    from limiter.metrics.instruments import Instrument
    from limiter.metrics.outcome_counts import OutcomeCounts
    from limiter.metrics.topic_list import Budgets, BudgetSnapshot, HasStatistics

RATE_LIMIT_ATTRIBUTE = "pulsar.connection.rate_limit.operation.name"
RATE_LIMITS: Instrument[FlowTotals] = counter(
    "pulsar.broker.connection.rate_limit.count",
    "The number of times reading from a connection was paused, resumed, throttled or unthrottled.",
    lambda totals: totals.operations.items(),
    RATE_LIMIT_ATTRIBUTE,
    unit="{operation}",
)
"""Pauses, resumes, throttles and unthrottles of connections.

Source: upstream BrokerService.
"""


def create(
    meter: Meter,
    row: Instrument[SourceT],
    source: Callable[[], SourceT | None],
    labels: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Create an OpenTelemetry metric from a row; it has no values while ``source`` returns None."""

    def read(_: CallbackOptions) -> Iterator[Observation]:
        if (found := source()) is not None:
            for own, value, _suffix in row.read(found):
                yield Observation(value, {**labels, **own})

    creating = {
        Kind.GAUGE: meter.create_observable_gauge,
        Kind.UP_DOWN_COUNTER: meter.create_observable_up_down_counter,
        Kind.COUNTER: meter.create_observable_counter,
    }[row.kind]
    creating(row.name, [read], row.unit, row.description)


class TopicListInstruments:
    """OpenTelemetry metrics of a limiter's topic-list memory, for a meter with a single reader.

    Gauges and counters are read with the meter, in the reader's thread; waits are recorded in the
    histograms as they happen, except the zero waits that :meth:`completed` adds.
    """

    def __init__(self, meter: Meter, limiter: HasStatistics, tally: OutcomeCounts) -> None:
        self._waits: dict[LimitType, _Waits] = {}

        def budgets() -> Budgets:
            return budgets_now(limiter, tally)

        def budget(limit_type: LimitType) -> BudgetSnapshot:
            return next(one for one in budgets() if one.limit_type is limit_type)

        for rows in zip(*PULSAR_INSTRUMENTS.values(), strict=True):
            for limit_type, row in zip(PULSAR_INSTRUMENTS, rows, strict=True):
                if row.kind is Kind.SUMMARY:
                    histogram = meter.create_histogram(row.name, row.unit, row.description)
                    self._waits[limit_type] = _Waits(row.name, histogram)
                else:
                    create(meter, row, partial(budget, limit_type))
        for own in OWN_INSTRUMENTS:
            create(meter, own, budgets)
        tally.listen(self._record)

    def completed(self, data: MetricsData) -> MetricsData:
        """Return the metrics that a reader has read, with unrecorded waits of 0 s added.

        Call it once for each reading, in the event-loop iteration of the reading.
        """
        waits = {each.name: each for each in self._waits.values()}

        def metric(read: Metric) -> Metric:
            return waits[read.name].completed(read) if read.name in waits else read

        def scope(read: ScopeMetrics) -> ScopeMetrics:
            return replace(read, metrics=[metric(each) for each in read.metrics])

        def resource(read: ResourceMetrics) -> ResourceMetrics:
            return replace(read, scope_metrics=[scope(each) for each in read.scope_metrics])

        return replace(data, resource_metrics=[resource(each) for each in data.resource_metrics])

    def _record(self, limit_type: LimitType, waited_seconds: float, count: int) -> None:
        self._waits[limit_type].record(waited_seconds, count)


class _Waits:
    """Histogram of the seconds that requests wait for the memory of a budget.

    The SDK takes 5 us for each record: too much for requests without a wait, which are the majority
    and arrive by the thousand. A single request of such a batch is recorded; the rest are added to
    the read data.
    """

    def __init__(self, name: str, histogram: HistogramInstrument) -> None:
        self.name = name
        self._histogram = histogram
        self._unrecorded = 0
        self._unrecorded_and_unread = 0

    def record(self, waited_seconds: float, count: int) -> None:
        if waited_seconds == 0:
            self._unrecorded += count - 1
            self._unrecorded_and_unread += count - 1
            count = 1
        for _ in range(count):
            self._histogram.record(waited_seconds)

    def completed(self, metric: Metric) -> Metric:
        """Add the unrecorded waits of 0 s to the data of a reading.

        A recorded wait of the same batch guarantees a data point.
        """
        data = metric.data
        if isinstance(data, Histogram):
            points = [_with_zeros(each, self._missing(data)) for each in data.data_points]
            data = replace(data, data_points=points)
        elif isinstance(data, ExponentialHistogram):
            apart = [_with_zeros_apart(each, self._missing(data)) for each in data.data_points]
            data = replace(data, data_points=apart)
        self._unrecorded_and_unread = 0
        return replace(metric, data=data)

    def _missing(self, data: Histogram | ExponentialHistogram) -> int:
        delta = data.aggregation_temporality is AggregationTemporality.DELTA
        return self._unrecorded_and_unread if delta else self._unrecorded


def _with_zeros(point: HistogramDataPoint, count: int) -> HistogramDataPoint:
    """Add ``count`` waits of 0 s to a data point with buckets."""
    buckets = list(point.bucket_counts)
    buckets[bisect_left(point.explicit_bounds, 0.0)] += count
    return replace(point, count=point.count + count, bucket_counts=tuple(buckets))


def _with_zeros_apart(
    point: ExponentialHistogramDataPoint, count: int
) -> ExponentialHistogramDataPoint:
    """Add ``count`` waits of 0 s to a data point that counts zeros apart from its buckets."""
    return replace(point, count=point.count + count, zero_count=point.zero_count + count)
