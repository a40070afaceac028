"""The OpenTelemetry instruments are those of a real broker, and agree with Prometheus."""

from typing import NamedTuple

import pytest
from opentelemetry.sdk.metrics import Histogram as HistogramInstrument
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics import ObservableCounter as CounterInstrument
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    ExponentialHistogramDataPoint,
    Gauge,
    HistogramDataPoint,
    InMemoryMetricReader,
    Metric,
    NumberDataPoint,
    Sum,
)
from opentelemetry.sdk.metrics.view import ExponentialBucketHistogramAggregation

from limiter.flow.causes import PauseCause
from limiter.flow.read_gate import ReadGate
from limiter.flow.totals import FlowTotals
from limiter.memory.dual_limiter import DualStatistics, LimitType
from limiter.metrics.otel import RATE_LIMITS, TopicListInstruments, create
from limiter.metrics.outcome_counts import OutcomeCounts
from limiter.permits.permit import AcquireOutcome, SemaphoreStatistics
from tests.support.clocks.manual_clock import ManualClock

HEAP, DIRECT = LimitType.HEAP_MEMORY, LimitType.DIRECT_MEMORY
DELTA = AggregationTemporality.DELTA


class FixedLimiter:
    """A limiter with fixed statistics."""

    def statistics(self) -> DualStatistics:
        return DualStatistics(
            SemaphoreStatistics(
                1000, 1040, -40, 3, 10, 1100, 4, 12.5, 40, 2, 6, policy_fault="turn raises"
            ),
            SemaphoreStatistics(0, 0, 2**63 - 1, 0, 20, 0),
        )


class Telemetry:
    """A meter with one reader, and the tally feeding the instruments."""

    def __init__(self, reader: InMemoryMetricReader | None = None) -> None:
        self.reader = reader or InMemoryMetricReader()
        self.tally = OutcomeCounts(ManualClock())
        provider = MeterProvider([self.reader], shutdown_on_exit=False)
        meter = provider.get_meter("test")
        self.instruments = TopicListInstruments(meter, FixedLimiter(), self.tally)

    def read(self) -> dict[str, Metric]:
        data = self.reader.get_metrics_data()
        assert data is not None
        (resource,) = self.instruments.completed(data).resource_metrics
        (scope,) = resource.scope_metrics
        return {metric.name: metric for metric in scope.metrics}

    def waits(self, kind: str = "heap") -> HistogramDataPoint | ExponentialHistogramDataPoint:
        (point,) = self.read()[f"topic.list.{kind}.wait.time"].data.data_points
        assert isinstance(point, HistogramDataPoint | ExponentialHistogramDataPoint)
        return point


class Row(NamedTuple):
    """A reader's view of one instrument."""

    kind: str
    unit: str
    description: str
    value: object


def row(metric: Metric) -> Row:
    (point,) = metric.data.data_points
    assert point.attributes == {}
    kind = type(metric.data).__name__
    if isinstance(metric.data, Sum):
        kind = "counter" if metric.data.is_monotonic else "up-down counter"
    value = point.value if isinstance(point, NumberDataPoint) else None
    return Row(kind, metric.unit, metric.description, value)


def shipped(kind: str, values: tuple[float, float, int, int, int]) -> dict[str, Row]:
    """Return the fact sheet's values of one budget."""
    used, limit, waiting, places, timeouts = values
    name = f"topic.list.{kind}"
    return {
        f"{name}.memory.used": Row(
            "Gauge", "By", f"Current {kind} memory used by topic listings", used
        ),
        f"{name}.memory.limit": Row("Gauge", "By", f"Configured {kind} memory limit", limit),
        f"{name}.queue.size": Row(
            "up-down counter", "1", f"Current {kind} memory limiter queue size", waiting
        ),
        f"{name}.queue.max.size": Row(
            "Gauge", "1", f"Maximum {kind} memory limiter queue size", places
        ),
        f"{name}.wait.time": Row("Histogram", "s", f"Wait time for {kind} memory permits", None),
        f"{name}.timeout.total": Row(
            "counter", "1", f"Total {kind} memory permit timeouts", timeouts
        ),
    }


def test_the_twelve_instruments_are_in_profile_pulsar_and_have_no_attributes() -> None:
    telemetry = Telemetry()
    telemetry.tally.observe(HEAP, AcquireOutcome.TIMED_OUT, 25.0)
    telemetry.tally.observe(DIRECT, AcquireOutcome.GRANTED, 0.0)
    metrics = telemetry.read()
    rows = {name: row(metric) for name, metric in metrics.items() if name.startswith("topic.")}
    expected = {
        **shipped("heap", (1040.0, 1000.0, 3, 10, 1)),
        **shipped("direct", (0.0, 0.0, 0, 20, 0)),
    }
    assert rows == expected
    # Doubles are doubles and longs are longs, as on the wire
    assert {name: type(one.value) for name, one in rows.items()} == {
        name: type(one.value) for name, one in expected.items()
    }


def test_no_histogram_is_exported_before_the_first_wait() -> None:
    assert "topic.list.heap.wait.time" not in Telemetry().read()


def test_waits_are_recorded_in_seconds() -> None:
    telemetry = Telemetry()
    telemetry.tally.observe(HEAP, AcquireOutcome.GRANTED, 0.25, 2)
    telemetry.tally.observe(HEAP, AcquireOutcome.TIMED_OUT, 25.0)
    telemetry.tally.observe(HEAP, AcquireOutcome.CANCELLED, 7.0)
    point = telemetry.waits()
    assert (point.count, point.sum, point.min, point.max) == (3, 25.5, 0.25, 25.0)


def test_a_batch_of_waits_of_zero_seconds_counts_in_full() -> None:
    telemetry = Telemetry()
    telemetry.tally.observe(HEAP, AcquireOutcome.GRANTED, 0.0, 1_000_000)
    telemetry.tally.observe(HEAP, AcquireOutcome.GRANTED, 6.0)
    first = telemetry.waits()
    telemetry.tally.observe(HEAP, AcquireOutcome.GRANTED, 0.0, 10)
    telemetry.tally.observe(DIRECT, AcquireOutcome.GRANTED, 0.0, 3)
    second = telemetry.waits()
    assert isinstance(first, HistogramDataPoint)
    assert isinstance(second, HistogramDataPoint)
    assert first.explicit_bounds[:3] == (0.0, 5.0, 10.0)
    assert first.bucket_counts[:4] == (1_000_000, 0, 1, 0)
    assert (first.count, first.sum, first.min, first.max) == (1_000_001, 6.0, 0.0, 6.0)
    assert second.bucket_counts[:4] == (1_000_010, 0, 1, 0)
    assert second.count == sum(second.bucket_counts) == 1_000_011
    assert telemetry.waits("direct").count == 3


def test_a_reader_of_deltas_receives_each_batch_once() -> None:
    reader = InMemoryMetricReader({HistogramInstrument: DELTA, CounterInstrument: DELTA})
    telemetry = Telemetry(reader)
    telemetry.tally.observe(HEAP, AcquireOutcome.GRANTED, 0.0, 100)
    first = telemetry.waits()
    telemetry.tally.observe(HEAP, AcquireOutcome.GRANTED, 0.0, 10)
    second = telemetry.waits()
    third = telemetry.read()
    assert (first.count, second.count) == (100, 10)
    assert "topic.list.heap.wait.time" not in third


def test_an_exponential_histogram_counts_zeros_separately() -> None:
    reader = InMemoryMetricReader(
        preferred_aggregation={HistogramInstrument: ExponentialBucketHistogramAggregation()}
    )
    telemetry = Telemetry(reader)
    telemetry.tally.observe(HEAP, AcquireOutcome.GRANTED, 0.0, 100)
    telemetry.tally.observe(HEAP, AcquireOutcome.GRANTED, 2.0)
    point = telemetry.waits()
    assert isinstance(point, ExponentialHistogramDataPoint)
    assert (point.count, point.zero_count, point.sum) == (101, 100, 2.0)


def test_floodgates_own_instruments_have_the_type_as_an_attribute() -> None:
    telemetry = Telemetry()
    telemetry.tally.observe(DIRECT, AcquireOutcome.QUEUE_FULL, 0.0)
    metrics = telemetry.read()
    values = {
        (name.removeprefix("floodgate.topic.list."), *point.attributes.values()): point.value
        for name, metric in metrics.items()
        if name.startswith("floodgate.")
        for point in metric.data.data_points
        if isinstance(point, NumberDataPoint) and point.attributes
    }
    requests = {key: value for key, value in values.items() if key[0] == "requests"}
    # A policy's refusals are counted by the policy's reasons.
    assert len(requests) == 2 * (len(AcquireOutcome) - 1)
    assert {key for key, value in requests.items() if value} == {
        ("requests", "direct", "queue_full")
    }
    assert {key: value for key, value in values.items() if key not in requests} == {
        ("memory.high_water", "heap"): 1100,
        ("memory.high_water", "direct"): 0,
        ("memory.overdraft", "heap"): 40,
        ("memory.overdraft", "direct"): 0,
        ("passed", "heap"): 6,
        ("passed", "direct"): 0,
        ("policy.faults", "heap", "turn raises"): 1,
        ("policy.faults", "direct"): 0,
        ("holders", "heap"): 4,
        ("holders", "direct"): 0,
        ("oldest_waiter", "heap"): 12.5,
        ("oldest_waiter", "direct"): 0,
    }


@pytest.mark.parametrize(
    ("name", "kind"),
    [("requests", "counter"), ("holders", "up-down counter"), ("memory.overdraft", "gauge")],
)
def test_floodgates_own_instruments_have_the_expected_kinds(name: str, kind: str) -> None:
    data = Telemetry().read()[f"floodgate.topic.list.{name}"].data
    if kind == "gauge":
        assert isinstance(data, Gauge)
    else:
        assert isinstance(data, Sum)
        assert data.is_monotonic == (kind == "counter")


def test_pauses_are_counted_under_the_name_of_a_real_broker() -> None:
    reader = InMemoryMetricReader()
    meter = MeterProvider([reader], shutdown_on_exit=False).get_meter("test")
    totals = FlowTotals(ManualClock())
    create(meter, RATE_LIMITS, lambda: totals)
    gate = ReadGate(lambda: None, lambda: None, totals)
    # Two causes make one pause; publishes are counted separately
    gate.close_for(PauseCause.OUTBOUND_BUFFER_FULL)
    gate.close_for(PauseCause.PENDING_PUBLISHES)
    gate.open_for(PauseCause.OUTBOUND_BUFFER_FULL)
    gate.open_for(PauseCause.PENDING_PUBLISHES)
    gate.close_for(PauseCause.COOLDOWN)
    data = reader.get_metrics_data()
    assert data is not None
    (metric,) = data.resource_metrics[0].scope_metrics[0].metrics
    assert isinstance(metric.data, Sum)
    assert (metric.name, metric.unit) == (
        "pulsar.broker.connection.rate_limit.count",
        "{operation}",
    )
    assert metric.data.is_monotonic
    assert {
        point.attributes["pulsar.connection.rate_limit.operation.name"]: point.value
        for point in metric.data.data_points
        if point.attributes
    } == {"paused": 2, "resumed": 1, "throttled": 1, "unthrottled": 1}
