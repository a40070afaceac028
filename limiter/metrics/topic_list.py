"""Definitions of the metrics of topic-list memory.

Source: PIP-442, upstream TopicListMemoryLimiter; rows beginning with floodgate are Floodgate's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from limiter.memory.dual_limiter import LimitType
from limiter.metrics.instruments import Kind, counter, gauge, summary
from limiter.permits.permit import AcquireOutcome

if TYPE_CHECKING:
    from limiter.memory.dual_limiter import DualStatistics
    from limiter.metrics.instruments import Instrument, Pairs, Table
    from limiter.metrics.outcome_counts import BudgetOutcomes, OutcomeCounts
    from limiter.permits.permit import SemaphoreStatistics


@dataclass(frozen=True, slots=True)
class BudgetSnapshot:
    """Snapshot of a budget's statistics and of its requests' outcomes."""

    limit_type: LimitType
    statistics: SemaphoreStatistics
    tally: BudgetOutcomes


Budgets = tuple[BudgetSnapshot, BudgetSnapshot]


class HasStatistics(Protocol):
    """Interface of a limiter whose statistics the metrics read."""

    def statistics(self) -> DualStatistics:
        """Return a snapshot of the heap budget and the direct memory budget."""


def budgets_now(limiter: HasStatistics, tally: OutcomeCounts) -> Budgets:
    """Return snapshots of the heap and direct memory budgets, heap first.

    The statistics are taken first: with them the limiter reports the grants held back for batching,
    so that the tally is up to date.
    """
    statistics = limiter.statistics()
    heap, direct = LimitType.HEAP_MEMORY, LimitType.DIRECT_MEMORY
    return (
        BudgetSnapshot(heap, statistics.heap, tally.of(heap)),
        BudgetSnapshot(direct, statistics.direct, tally.of(direct)),
    )


def _used_bytes(budget: BudgetSnapshot) -> float:
    """Return the held bytes of a budget; 0 without a limit, because nothing is counted then."""
    return float(budget.statistics.acquired_permits if budget.statistics.max_permits > 0 else 0)


def _pulsar_instruments(kind: str) -> Table[BudgetSnapshot]:
    return (
        gauge(
            f"topic.list.{kind}.memory.used",
            f"Current {kind} memory used by topic listings",
            _used_bytes,
            unit="By",
        ),
        gauge(
            f"topic.list.{kind}.memory.limit",
            f"Configured {kind} memory limit",
            lambda budget: float(max(0, budget.statistics.max_permits)),
            unit="By",
        ),
        gauge(
            f"topic.list.{kind}.queue.size",
            f"Current {kind} memory limiter queue size",
            lambda budget: budget.statistics.queue_size,
            kind=Kind.UP_DOWN_COUNTER,
        ),
        gauge(
            f"topic.list.{kind}.queue.max.size",
            f"Maximum {kind} memory limiter queue size",
            lambda budget: budget.statistics.max_queue_size,
        ),
        summary(
            f"topic.list.{kind}.wait.time",
            f"Wait time for {kind} memory permits",
            lambda budget: budget.tally.waits,
            unit="s",
        ),
        counter(
            f"topic.list.{kind}.timeout.total",
            f"Total {kind} memory permit timeouts",
            lambda budget: budget.tally.outcomes[AcquireOutcome.TIMED_OUT],
        ),
    )


PULSAR_INSTRUMENTS = {one: _pulsar_instruments(one.value) for one in LimitType}
"""A real broker's instruments: separate for heap and direct memory, without attributes."""


def _by_outcome(budgets: Budgets) -> Pairs:
    """Yield the number of requests by outcome, with the policy's refusals by reason."""
    for budget in budgets:
        ended = {
            one.name.lower(): count
            for one, count in budget.tally.outcomes.items()
            if one is not AcquireOutcome.REFUSED
        }
        for reason, count in budget.statistics.refused.items():
            ended[reason] = count + ended.get(reason, 0)
        for outcome, count in ended.items():
            yield (budget.limit_type.value, outcome), count


def _policy_faults(budgets: Budgets) -> Pairs:
    for budget in budgets:
        fault = budget.statistics.policy_fault
        yield ((budget.limit_type.value, fault), 1) if fault else (budget.limit_type, 0)


def _own(
    name: str, description: str, attribute: str, unit: str = "1", kind: Kind = Kind.GAUGE
) -> Instrument[Budgets]:
    """Return an instrument that reads an attribute of each budget's statistics."""
    number = int if unit == "1" else float

    def read(budgets: Budgets) -> Pairs:
        return [(one.limit_type, number(getattr(one.statistics, attribute))) for one in budgets]

    return gauge(f"floodgate.topic.list.{name}", description, read, "type", unit=unit, kind=kind)


OWN_INSTRUMENTS: Table[Budgets] = (
    _own("memory.high_water", "Peak memory of topic listings", "high_water_permits", "By"),
    _own(
        "memory.overdraft",
        "Memory granted beyond the limit to end a growth stall",
        "overdraft_permits",
        "By",
    ),
    counter(
        "floodgate.topic.list.requests",
        "Requests for topic-list memory, by outcome",
        _by_outcome,
        "type",
        "outcome",
    ),
    _own(
        "passed",
        "Requests granted ahead of the request that was next",
        "passed_total",
        kind=Kind.COUNTER,
    ),
    counter(
        "floodgate.topic.list.policy.faults",
        "1 after fifo replaced a failed admission policy",
        _policy_faults,
        "type",
        "fault",
    ),
    _own(
        "holders",
        "Connections holding topic-list memory or waiting for it",
        "holders",
        kind=Kind.UP_DOWN_COUNTER,
    ),
    _own(
        "oldest_waiter",
        "Time that the oldest waiting request has waited",
        "oldest_waiter_seconds",
        "s",
    ),
)
"""Floodgate's own instruments, with the attribute ``type``."""
