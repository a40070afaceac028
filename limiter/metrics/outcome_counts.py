"""Counts of memory requests by outcome, updated by the limiter's observer for all metrics."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from limiter.memory.dual_limiter import LimitType
from limiter.metrics.wait_times import WaitTimes
from limiter.permits.permit import AcquireOutcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from limiter.clock import Clock

WAITS = frozenset({AcquireOutcome.GRANTED, AcquireOutcome.OVERDRAFT, AcquireOutcome.TIMED_OUT})
"""Outcomes that count as a wait; refused and cancelled requests do not."""


@dataclass(frozen=True, slots=True)
class BudgetOutcomes:
    """Number of a budget's requests by outcome, and their waiting times.

    Attributes:
        waits: Waits of the granted and timed out requests.
        outcomes: Requests by outcome, for every outcome.
    """

    waits: WaitTimes
    outcomes: dict[AcquireOutcome, int] = field(
        default_factory=lambda: dict.fromkeys(AcquireOutcome, 0)
    )


class OutcomeCounts:
    """Observer of a limiter, which counts requests by outcome."""

    def __init__(self, clock: Clock) -> None:
        self._budgets = {limit_type: BudgetOutcomes(WaitTimes(clock)) for limit_type in LimitType}
        self._listener: Callable[[LimitType, float, int], None] | None = None

    def of(self, limit_type: LimitType) -> BudgetOutcomes:
        """Return the counts of a budget's requests."""
        return self._budgets[limit_type]

    def listen(self, listener: Callable[[LimitType, float, int], None]) -> None:
        """Call ``listener`` for each wait, too, with budget, seconds and number of equal waits."""
        self._listener = listener

    def observe(
        self,
        limit_type: LimitType,
        outcome: AcquireOutcome,
        waited_seconds: float,
        count: int = 1,
    ) -> None:
        """Count ``count`` requests with the same outcome after the same wait.

        A timeout counts as a wait as well, as in upstream's summary.
        """
        budget = self._budgets[limit_type]
        budget.outcomes[outcome] += count
        if outcome not in WAITS:
            return
        budget.waits.record(waited_seconds, count)
        if self._listener is not None:
            self._listener(limit_type, waited_seconds, count)
