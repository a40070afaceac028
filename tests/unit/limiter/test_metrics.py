"""The samples of the topic-list limiter agree with those of a real broker."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from prometheus_client import CollectorRegistry

from limiter.dual import AsyncDualMemoryLimiter, DualStatistics, LimitType, MemoryLimit
from limiter.metrics import TopicListMetrics
from limiter.permit import AcquireOutcome, SemaphoreStatistics
from server.exposition import exposition
from tests.support.manual_clock import ManualClock
from tests.support.samples import SampleLine, read_samples

if TYPE_CHECKING:
    from limiter.metrics import MetricPrefix

GOLDEN = Path(__file__).parents[2] / "golden" / "metrics.txt"
CREATED_SECONDS = 1_795_239_238.491


class FixedLimiter:
    """Says what it was told to say."""

    def __init__(self, heap: SemaphoreStatistics, direct: SemaphoreStatistics) -> None:
        self._statistics = DualStatistics(heap, direct)

    def statistics(self) -> DualStatistics:
        return self._statistics


BUSY = FixedLimiter(
    SemaphoreStatistics(1000, 600, 400, 3, 10, 900), SemaphoreStatistics(2000, 5, 1995, 0, 20, 7)
)
UNBOUNDED = FixedLimiter(
    SemaphoreStatistics(0, 0, 2**63 - 1, 0, 10, 0), SemaphoreStatistics(-1, 0, 2**63 - 1, 0, 20, 0)
)


def metrics(limiter: FixedLimiter, prefix: MetricPrefix = "pulsar_broker") -> TopicListMetrics:
    return TopicListMetrics(prefix, "standalone", limiter, ManualClock(), lambda: CREATED_SECONDS)


def samples_of(collector: TopicListMetrics) -> list[SampleLine]:
    registry = CollectorRegistry()
    registry.register(collector)
    return read_samples(exposition(registry).decode())


def values_of(collector: TopicListMetrics) -> dict[str, float]:
    """Return values by name without prefix; a quantile is part of the name."""
    return {
        sample.name.removeprefix("pulsar_broker_topic_list_")
        + sample.labels.get("quantile", "")
        + sample.labels.get("type", ""): sample.value
        for sample in samples_of(collector)
    }


def golden_topic_list() -> set[tuple[str, str, tuple[str, ...]]]:
    rows = [line.split(" | ") for line in GOLDEN.read_text().splitlines()]
    return {
        (name, kind, tuple(labels.split(", ")))
        for name, kind, labels in rows
        if "_topic_list_" in name
    }


@pytest.mark.parametrize("limiter", [BUSY, UNBOUNDED])
@pytest.mark.parametrize("prefix", ["pulsar_broker", "pulsar_proxy"])
def test_the_26_samples_have_recorded_names_types_and_labels(
    prefix: MetricPrefix, limiter: FixedLimiter
) -> None:
    # When
    samples = [
        sample for sample in samples_of(metrics(limiter, prefix)) if sample.name.startswith(prefix)
    ]
    # Then
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
    # When
    values = values_of(metrics(BUSY))
    # Then
    assert values["heap_memory_used_bytes"] == 600
    assert values["heap_memory_limit_bytes"] == 1000
    assert values["heap_queue_size"] == 3
    assert values["heap_queue_max_size"] == 10
    assert values["direct_memory_used_bytes"] == 5
    assert values["direct_memory_limit_bytes"] == 2000
    assert values["direct_queue_max_size"] == 20
    assert values["floodgate_topic_list_memory_high_water_bytesheap"] == 900
    assert values["floodgate_topic_list_memory_high_water_bytesdirect"] == 7


def test_without_a_limit_all_is_zero_but_the_configured_queue() -> None:
    # When
    values = values_of(metrics(UNBOUNDED))
    # Then
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


def test_before_the_first_wait_quantiles_are_not_numbers_and_all_was_created() -> None:
    # When
    values = values_of(metrics(BUSY))
    # Then
    assert math.isnan(values["heap_wait_time_ms0.5"])
    assert math.isnan(values["direct_wait_time_ms1.0"])
    assert values["heap_wait_time_ms_count"] == values["heap_wait_time_ms_sum"] == 0
    assert (
        values["heap_timeout_created"] == values["direct_wait_time_ms_created"] == CREATED_SECONDS
    )


def test_a_timeout_is_a_wait_and_a_timeout_and_refusals_are_neither() -> None:
    # Given
    collector = metrics(BUSY)
    # When
    collector.observe(LimitType.HEAP_MEMORY, AcquireOutcome.GRANTED, 0.0)
    collector.observe(LimitType.HEAP_MEMORY, AcquireOutcome.TIMED_OUT, 25.0)
    for outcome in set(AcquireOutcome) - {AcquireOutcome.GRANTED, AcquireOutcome.TIMED_OUT}:
        collector.observe(LimitType.HEAP_MEMORY, outcome, 5.0)
    # Then
    values = values_of(collector)
    assert values["heap_wait_time_ms_count"] == 2
    assert values["heap_wait_time_ms_sum"] == 25_000
    assert values["heap_wait_time_ms1.0"] == 25_000
    assert values["heap_timeout_total"] == 1
    assert values["direct_wait_time_ms_count"] == values["direct_timeout_total"] == 0


async def test_the_real_limiter_is_watched() -> None:
    # Given
    clock = ManualClock()
    limiter = AsyncDualMemoryLimiter(MemoryLimit(100, 5, 25.0), MemoryLimit(0, 5, 25.0), clock)
    collector = TopicListMetrics("pulsar_broker", "c", limiter, clock)
    limiter.observe_with(collector.observe)
    # When
    permit = await limiter.acquire(LimitType.HEAP_MEMORY, 60)
    waiting = limiter.request(LimitType.HEAP_MEMORY, 60)
    clock.advance(2.5)
    limiter.release(permit)
    # Then
    assert waiting.done
    values = values_of(collector)
    assert values["heap_memory_used_bytes"] == 60
    assert (values["heap_wait_time_ms_count"], values["heap_wait_time_ms_sum"]) == (2, 2500)
    assert values["direct_memory_limit_bytes"] == 0
