"""The samples of the topic-list limiter agree with those of a real broker."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from limiter.memory.dual_limiter import (
    AsyncDualMemoryLimiter,
    DualStatistics,
    LimitType,
    MemoryLimit,
)
from limiter.metrics.outcome_counts import OutcomeCounts
from limiter.metrics.prometheus import MetricPrefix, TopicListMetrics
from limiter.permits.permit import AcquireOutcome, SemaphoreStatistics
from tests.support.clocks.manual_clock import ManualClock
from tests.support.processes.samples import SampleLine, exposition, prometheus_type, read_samples

GOLDEN = Path(__file__).parents[3] / "golden" / "metrics.txt"
CREATED_SECONDS = 1_795_239_238.491
OWN_LABELS = ("type", "outcome", "fault")


class FixedLimiter:
    """A limiter with fixed statistics."""

    def __init__(self, heap: SemaphoreStatistics, direct: SemaphoreStatistics) -> None:
        self._statistics = DualStatistics(heap, direct)

    def statistics(self) -> DualStatistics:
        return self._statistics


BUSY = FixedLimiter(
    SemaphoreStatistics(
        1000, 1040, -40, 3, 10, 1100, 4, 12.5, 40, 2, 6, policy_fault="turn raises"
    ),
    SemaphoreStatistics(2000, 5, 1995, 0, 20, 7),
)
# Permits from before the limit was lifted are still held.
UNBOUNDED = FixedLimiter(
    SemaphoreStatistics(0, 5, 2**63 - 1, 0, 10, 0), SemaphoreStatistics(-1, 0, 2**63 - 1, 0, 20, 0)
)


def metrics(
    limiter: FixedLimiter,
    prefix: MetricPrefix = "pulsar_broker",
    tally: OutcomeCounts | None = None,
) -> TopicListMetrics:
    tally = tally or OutcomeCounts(ManualClock())
    return TopicListMetrics(prefix, "standalone", limiter, tally, lambda: CREATED_SECONDS)


def samples_of(collector: TopicListMetrics) -> list[SampleLine]:
    registry = CollectorRegistry()
    registry.register(collector)
    return read_samples(exposition(registry).decode())


def values_of(collector: TopicListMetrics) -> dict[str, float]:
    """Return values by name without prefix; quantile, type and outcome are part of the name."""
    return {
        "".join(
            (
                sample.name.removeprefix("pulsar_broker_topic_list_"),
                sample.labels.get("quantile", ""),
                " ".join(("", *(sample.labels[n] for n in OWN_LABELS if n in sample.labels))),
            )
        ).rstrip(): sample.value
        for sample in samples_of(collector)
    }


def golden_topic_list() -> set[tuple[str, str, tuple[str, ...]]]:
    rows = [line.split(" | ") for line in GOLDEN.read_text().splitlines()]
    return {
        (name, prometheus_type(name, kind), tuple(labels.split(", ")))
        for name, kind, labels in rows
        if "_topic_list_" in name
    }


@pytest.mark.parametrize("limiter", [BUSY, UNBOUNDED])
@pytest.mark.parametrize("prefix", ["pulsar_broker", "pulsar_proxy"])
def test_the_26_samples_have_recorded_names_types_and_labels(prefix, limiter) -> None:
    samples = [
        sample for sample in samples_of(metrics(limiter, prefix)) if sample.name.startswith(prefix)
    ]
    assert len(samples) == 26
    assert {
        (
            sample.name.replace(prefix, "pulsar_broker"),
            sample.type,
            tuple(sorted(sample.labels)),
        )
        for sample in samples
    } == golden_topic_list()
    quantiles = [s.labels["quantile"] for s in samples if "quantile" in s.labels]
    assert quantiles == ["0.5", "0.95", "0.99", "1.0"] * 2


def test_gauges_are_read_from_the_limiter() -> None:
    values = values_of(metrics(BUSY))
    assert values["heap_memory_used_bytes"] == 1040
    assert values["heap_memory_limit_bytes"] == 1000
    assert values["heap_queue_size"] == 3
    assert values["heap_queue_max_size"] == 10
    assert values["direct_memory_used_bytes"] == 5
    assert values["direct_memory_limit_bytes"] == 2000
    assert values["direct_queue_max_size"] == 20


def test_floodgates_own_instruments_have_the_type_as_a_label() -> None:
    values = values_of(metrics(BUSY))
    assert {
        name.removeprefix("floodgate_topic_list_"): value
        for name, value in values.items()
        if name.startswith("floodgate_") and "requests" not in name
    } == {
        "memory_high_water_bytes heap": 1100,
        "memory_high_water_bytes direct": 7,
        "memory_overdraft_bytes heap": 40,
        "memory_overdraft_bytes direct": 0,
        "passed_total heap": 6,
        "passed_total direct": 0,
        "policy_faults_total heap turn raises": 1,
        "policy_faults_total direct": 0,
        "holders heap": 4,
        "holders direct": 0,
        "oldest_waiter_seconds heap": 12.5,
        "oldest_waiter_seconds direct": 0,
    }


def test_requests_are_counted_by_outcome() -> None:
    tally = OutcomeCounts(ManualClock())
    for times, outcome in enumerate(AcquireOutcome, start=1):
        tally.observe(LimitType.DIRECT_MEMORY, outcome, 0.0, times)
    samples = [
        sample
        for sample in samples_of(metrics(BUSY, tally=tally))
        if sample.name == "floodgate_topic_list_requests_total"
    ]
    assert {sample.type for sample in samples} == {"counter"}
    assert [
        sample.labels["outcome"] for sample in samples if sample.labels["type"] == "direct"
    ] == [
        "granted",
        "overdraft",
        "timed_out",
        "queue_full",
        "cancelled",
        "closed",
        "oversized",
        "stalled",
    ]
    assert [(sample.labels["type"], sample.value) for sample in samples] == [
        *(("heap", 0) for _ in range(8)),
        *(("direct", times) for times in range(1, 9)),
    ]


def test_requests_refused_by_a_policy_are_counted_by_the_reasons_of_the_policy() -> None:
    # One of the labels is Floodgate's
    idle = SemaphoreStatistics(1000, 0, 1000, 0, 10, 0)
    limiter = FixedLimiter(replace(idle, refused={"too_late": 3, "timed_out": 1}), idle)
    tally = OutcomeCounts(ManualClock())
    tally.observe(LimitType.HEAP_MEMORY, AcquireOutcome.REFUSED, 0.0, 4)
    tally.observe(LimitType.HEAP_MEMORY, AcquireOutcome.TIMED_OUT, 25.0, 2)
    requests = {
        sample.labels["outcome"]: sample.value
        for sample in samples_of(metrics(limiter, tally=tally))
        if sample.name == "floodgate_topic_list_requests_total" and sample.labels["type"] == "heap"
    }
    assert {name: count for name, count in requests.items() if count} == {
        "too_late": 3,
        "timed_out": 3,
    }


def test_without_a_limit_every_value_is_zero_except_queue_sizes_and_creation_times() -> None:
    values = values_of(metrics(UNBOUNDED))
    not_zero = {name for name, value in values.items() if value and not math.isnan(value)}
    assert not_zero == {
        "heap_queue_max_size",
        "direct_queue_max_size",
        *(
            f"{kind}_{name}_created"
            for kind in ("heap", "direct")
            for name in ("timeout", "wait_time_ms")
        ),
    }


def test_before_the_first_wait_quantiles_are_nan_and_creation_times_are_exported() -> None:
    values = values_of(metrics(BUSY))
    assert math.isnan(values["heap_wait_time_ms0.5"])
    assert math.isnan(values["direct_wait_time_ms1.0"])
    assert values["heap_wait_time_ms_count"] == values["heap_wait_time_ms_sum"] == 0
    assert (
        values["heap_timeout_created"] == values["direct_wait_time_ms_created"] == CREATED_SECONDS
    )


def test_a_timeout_counts_as_a_wait_and_a_timeout_and_a_refusal_as_neither() -> None:
    tally = OutcomeCounts(ManualClock())
    waits = {AcquireOutcome.GRANTED: 0.0, AcquireOutcome.OVERDRAFT: 3.0}
    for outcome in AcquireOutcome:
        waited_seconds = 25.0 if outcome is AcquireOutcome.TIMED_OUT else waits.get(outcome, 5.0)
        tally.observe(LimitType.HEAP_MEMORY, outcome, waited_seconds)
    values = values_of(metrics(BUSY, tally=tally))
    assert values["heap_wait_time_ms_count"] == 3
    assert values["heap_wait_time_ms_sum"] == 28_000
    assert values["heap_wait_time_ms1.0"] == 25_000
    assert values["heap_timeout_total"] == 1
    assert values["direct_wait_time_ms_count"] == values["direct_timeout_total"] == 0


def test_grants_reported_when_statistics_are_read_appear_in_the_same_scrape() -> None:
    tally = OutcomeCounts(ManualClock())

    class ReportsLate(FixedLimiter):
        def statistics(self) -> DualStatistics:
            tally.observe(LimitType.HEAP_MEMORY, AcquireOutcome.GRANTED, 0.0, 7)
            return super().statistics()

    late = ReportsLate(BUSY.statistics().heap, BUSY.statistics().direct)
    values = values_of(metrics(late, tally=tally))
    assert values["heap_wait_time_ms_count"] == 7
    assert values["heap_wait_time_ms0.5"] == 0
    assert values["floodgate_topic_list_requests_total heap granted"] == 7


async def test_metrics_follow_a_real_limiter() -> None:
    clock = ManualClock()
    limiter = AsyncDualMemoryLimiter(MemoryLimit(100, 5, 25.0), MemoryLimit(0, 5, 25.0), clock)
    tally = OutcomeCounts(clock)
    collector = TopicListMetrics("pulsar_broker", "c", limiter, tally)
    limiter.observe_with(tally.observe)
    permit = await limiter.acquire(LimitType.HEAP_MEMORY, 60)
    waiting = limiter.request(LimitType.HEAP_MEMORY, 60)
    clock.advance(2.5)
    limiter.release(permit)
    assert waiting.done
    values = values_of(collector)
    assert values["heap_memory_used_bytes"] == 60
    assert (values["heap_wait_time_ms_count"], values["heap_wait_time_ms_sum"]) == (2, 2500)
    assert values["direct_memory_limit_bytes"] == 0
