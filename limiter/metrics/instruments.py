"""The table of instruments that measure topic-list memory, for all metrics libraries.

Prometheus (``limiter/metrics/prometheus.py``) and OpenTelemetry (``limiter/metrics/otel.py``)
create their instruments from the table, so the two cannot disagree. To add an instrument, add a
row.

Source: PIP-442, upstream TopicListMemoryLimiter; rows beginning with floodgate are Floodgate's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from limiter.memory.dual_limiter import LimitType
from limiter.permits.permit import AcquireOutcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from limiter.memory.dual_limiter import DualStatistics
    from limiter.metrics.outcome_counts import BudgetOutcomes, OutcomeCounts
    from limiter.permits.permit import SemaphoreStatistics


class InstrumentKind(Enum):
    """Kinds of instruments, by OpenTelemetry's names; the comments are Prometheus' types."""

    DOUBLE_GAUGE = "double gauge"  # gauge
    LONG_GAUGE = "long gauge"  # gauge
    UP_DOWN_COUNTER = "up-down counter"  # gauge
    COUNTER = "counter"  # counter
    HISTOGRAM = "histogram"  # summary


@dataclass(frozen=True, slots=True)
class BudgetSnapshot:
    """The input of an instrument: a budget's figures at a moment."""

    limit_type: LimitType
    statistics: SemaphoreStatistics
    tally: BudgetOutcomes


class HasStatistics(Protocol):
    """A limiter, as far as instruments are concerned."""

    def statistics(self) -> DualStatistics:
        """Return a snapshot of both budgets."""


def budgets_now(
    limiter: HasStatistics, tally: OutcomeCounts
) -> tuple[BudgetSnapshot, BudgetSnapshot]:
    """Return snapshots of both budgets, heap first.

    The statistics are taken first: with them the limiter reports the grants held back for batching,
    so that the tally is up to date.
    """
    statistics = limiter.statistics()
    heap, direct = LimitType.HEAP_MEMORY, LimitType.DIRECT_MEMORY
    return (
        BudgetSnapshot(heap, statistics.heap, tally.of(heap)),
        BudgetSnapshot(direct, statistics.direct, tally.of(direct)),
    )


@dataclass(frozen=True, slots=True)
class Instrument:
    """A row of the table. ``{type}`` in name and description is ``heap`` or ``direct``.

    Attributes:
        name: OpenTelemetry's name.
        prometheus_name: Prometheus' name; ``pulsar_broker_`` or ``pulsar_proxy_`` is prepended to
            Pulsar's own rows.
        kind: The kind of instrument.
        unit: OpenTelemetry's unit. Prometheus has the unit in the name, and waits in milliseconds.
        description: A sentence without a full stop.
        read: Returns the value by label, or under "" for a single value; unused for a histogram,
            which receives every wait.
        label: The name of the label.
    """

    name: str
    prometheus_name: str
    kind: InstrumentKind
    unit: str
    description: str
    read: Callable[[BudgetSnapshot], dict[str, int | float]] = lambda _: {}
    label: str = "outcome"

    def of(self, limit_type: LimitType) -> tuple[str, str, str]:
        """Return name, Prometheus' name and description for a budget."""
        name, prometheus_name, description = (
            text.format(type=limit_type.value)
            for text in (self.name, self.prometheus_name, self.description)
        )
        return name, prometheus_name, description


def _one(
    read: Callable[[BudgetSnapshot], int | float],
) -> Callable[[BudgetSnapshot], dict[str, int | float]]:
    return lambda budget: {"": read(budget)}


def _used_bytes(budget: BudgetSnapshot) -> int:
    """Return the held bytes; 0 without a limit, as nothing is counted."""
    return budget.statistics.acquired_permits if budget.statistics.max_permits > 0 else 0


def _by_outcome(budget: BudgetSnapshot) -> dict[str, int | float]:
    """Return requests by outcome; requests refused by the policy, by the policy's reasons."""
    outcomes = budget.tally.outcomes.items()
    ended: dict[str, int | float] = {
        one.name.lower(): n for one, n in outcomes if one is not AcquireOutcome.REFUSED
    }
    reasons = budget.statistics.refused.items()
    return ended | {label: count + ended.get(label, 0) for label, count in reasons}


PULSAR_INSTRUMENTS = (
    Instrument(
        "topic.list.{type}.memory.used",
        "topic_list_{type}_memory_used_bytes",
        InstrumentKind.DOUBLE_GAUGE,
        "By",
        "Current {type} memory used by topic listings",
        _one(_used_bytes),
    ),
    Instrument(
        "topic.list.{type}.memory.limit",
        "topic_list_{type}_memory_limit_bytes",
        InstrumentKind.DOUBLE_GAUGE,
        "By",
        "Configured {type} memory limit",
        _one(lambda budget: max(0, budget.statistics.max_permits)),
    ),
    Instrument(
        "topic.list.{type}.queue.size",
        "topic_list_{type}_queue_size",
        InstrumentKind.UP_DOWN_COUNTER,
        "1",
        "Current {type} memory limiter queue size",
        _one(lambda budget: budget.statistics.queue_size),
    ),
    Instrument(
        "topic.list.{type}.queue.max.size",
        "topic_list_{type}_queue_max_size",
        InstrumentKind.LONG_GAUGE,
        "1",
        "Maximum {type} memory limiter queue size",
        _one(lambda budget: budget.statistics.max_queue_size),
    ),
    Instrument(
        "topic.list.{type}.wait.time",
        "topic_list_{type}_wait_time_ms",
        InstrumentKind.HISTOGRAM,
        "s",
        "Wait time for {type} memory permits",
    ),
    Instrument(
        "topic.list.{type}.timeout.total",
        "topic_list_{type}_timeout_total",
        InstrumentKind.COUNTER,
        "1",
        "Total {type} memory permit timeouts",
        _one(lambda budget: budget.tally.outcomes[AcquireOutcome.TIMED_OUT]),
    ),
)
"""A real broker's instruments: separate for heap and direct memory, without attributes."""


OWN_INSTRUMENTS = (
    Instrument(
        "floodgate.topic.list.memory.high_water",
        "floodgate_topic_list_memory_high_water_bytes",
        InstrumentKind.DOUBLE_GAUGE,
        "By",
        "Peak memory of topic listings",
        _one(lambda budget: budget.statistics.high_water_permits),
    ),
    Instrument(
        "floodgate.topic.list.memory.overdraft",
        "floodgate_topic_list_memory_overdraft_bytes",
        InstrumentKind.DOUBLE_GAUGE,
        "By",
        "Memory granted beyond the limit to end a stall",
        _one(lambda budget: budget.statistics.overdraft_permits),
    ),
    Instrument(
        "floodgate.topic.list.requests",
        "floodgate_topic_list_requests_total",
        InstrumentKind.COUNTER,
        "1",
        "Requests for topic-list memory, by outcome",
        _by_outcome,
    ),
    Instrument(
        "floodgate.topic.list.passed",
        "floodgate_topic_list_passed_total",
        InstrumentKind.COUNTER,
        "1",
        "Requests granted before the request next in turn",
        _one(lambda budget: budget.statistics.passed_total),
    ),
    Instrument(
        "floodgate.topic.list.policy.faults",
        "floodgate_topic_list_policy_faults_total",
        InstrumentKind.COUNTER,
        "1",
        "1 once an admission policy failed and fifo replaced it",
        lambda budget: {budget.statistics.policy_fault: int(bool(budget.statistics.policy_fault))},
        "fault",
    ),
    Instrument(
        "floodgate.topic.list.holders",
        "floodgate_topic_list_holders",
        InstrumentKind.UP_DOWN_COUNTER,
        "1",
        "Connections holding topic-list memory or waiting for it",
        _one(lambda budget: budget.statistics.holders),
    ),
    Instrument(
        "floodgate.topic.list.oldest_waiter",
        "floodgate_topic_list_oldest_waiter_seconds",
        InstrumentKind.DOUBLE_GAUGE,
        "s",
        "How long the oldest waiting request has waited",
        _one(lambda budget: budget.statistics.oldest_waiter_seconds),
    ),
)
"""Floodgate's own instruments, with the attribute ``type``."""
