"""Counts how requests for memory ended: what the limiter's one observer keeps for all readers."""

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
"""Outcomes that count as a wait; a request that is refused or cancelled waited for nothing."""


@dataclass(frozen=True, slots=True)
class BudgetOutcomes:
    """The outcomes of the requests for one budget, and their waits.

    Attributes:
        waits: How long those waited that were granted or timed out.
        outcomes: Requests by outcome; every outcome is there.
    """

    waits: WaitTimes
    outcomes: dict[AcquireOutcome, int] = field(
        default_factory=lambda: dict.fromkeys(AcquireOutcome, 0)
    )


class OutcomeCounts:
    """The observer of one limiter."""

    def __init__(self, clock: Clock) -> None:
        self._budgets = {limit_type: BudgetOutcomes(WaitTimes(clock)) for limit_type in LimitType}
        self._listener: Callable[[LimitType, float, int], None] | None = None

    def of(self, limit_type: LimitType) -> BudgetOutcomes:
        """Return the counts of one budget."""
        return self._budgets[limit_type]

    def listen(self, listener: Callable[[LimitType, float, int], None]) -> None:
        """Call back for each wait, too: the budget, seconds, and how many waited so long."""
        self._listener = listener

    def observe(
        self,
        limit_type: LimitType,
        outcome: AcquireOutcome,
        waited_seconds: float,
        count: int = 1,
    ) -> None:
        """Take note of how ``count`` requests for permits ended after the same wait.

        A timeout is a wait and a timeout; so it is in upstream's summary.
        """
        budget = self._budgets[limit_type]
        budget.outcomes[outcome] += count
        if outcome not in WAITS:
            return
        budget.waits.record(waited_seconds, count)
        if self._listener is not None:
            self._listener(limit_type, waited_seconds, count)
