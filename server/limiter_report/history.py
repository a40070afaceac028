"""The last ten minutes of a limiter, for investigations after an incident.

Bound: KEPT moments; the oldest is evicted.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from limiter.metrics.topic_list import budgets_now
from limiter.permits.permit import AcquireOutcome

if TYPE_CHECKING:
    from limiter.clock import Clock, TimerHandle
    from limiter.memory.dual_limiter import LimitType
    from limiter.metrics.outcome_counts import OutcomeCounts
    from limiter.metrics.topic_list import BudgetSnapshot, HasStatistics

EACH_SECONDS = 2.0
KEPT = 300
"""Kept moments, for ten minutes."""
_REFUSED_AT_ONCE = (AcquireOutcome.QUEUE_FULL, AcquireOutcome.OVERSIZED, AcquireOutcome.STALLED)


class BudgetMoment(NamedTuple):
    """A budget's figures at a moment; the last two count since the start."""

    held_bytes: int
    waiting: int
    oldest_seconds: float
    refused: int
    timed_out: int


class Moment(NamedTuple):
    """Both budgets at a moment, in milliseconds since 1970."""

    at_ms: int
    budgets: dict[LimitType, BudgetMoment]


class LimiterHistory:
    """Samples a limiter every two seconds.

    The mutable state is the moments and the armed timer.

    Attributes:
        moments: The samples, oldest first.
    """

    def __init__(self, limiter: HasStatistics, tally: OutcomeCounts, clock: Clock) -> None:
        self.moments: deque[Moment] = deque(maxlen=KEPT)
        self._limiter = limiter
        self._tally = tally
        self._clock = clock
        self._timer: TimerHandle | None = None

    def now(self) -> Moment:
        """Return the current figures."""
        seen = budgets_now(self._limiter, self._tally)
        return Moment(self._clock.wall_ms(), {one.limit_type: moment_of(one) for one in seen})

    def start(self) -> None:
        """Sample now, and periodically."""
        self.moments.append(self.now())
        self._timer = self._clock.call_at(self._clock.now() + EACH_SECONDS, self.start)

    def stop(self) -> None:
        """Stop sampling. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def moment_of(budget: BudgetSnapshot) -> BudgetMoment:
    """Return the recorded figures of a budget."""
    outcomes, now = budget.tally.outcomes, budget.statistics
    return BudgetMoment(
        held_bytes=now.acquired_permits,
        waiting=now.queue_size,
        oldest_seconds=round(now.oldest_waiter_seconds, 1),
        refused=sum(outcomes[each] for each in _REFUSED_AT_ONCE),
        timed_out=outcomes[AcquireOutcome.TIMED_OUT],
    )
