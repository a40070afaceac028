"""A queue of requests behind a holder of all permits, and measurement of their cost."""

from __future__ import annotations

import gc
import time
from collections import Counter
from enum import Enum
from typing import TYPE_CHECKING, Any

from benchmarks.processes import BenchError
from benchmarks.result import Figure
from limiter.admission.rules import AdmissionPolicy, AdmissionRules
from limiter.semaphore.async_semaphore import AsyncSemaphore

if TYPE_CHECKING:
    from collections.abc import Coroutine, Hashable, Mapping, Sequence

    from limiter.permits.permit import AcquireOutcome

MAX_ROUNDS = 3
"""A round measures hundreds of thousands of waiters: three rounds suffice."""
FEW, MANY = 1_000, 10_000
"""Compared numbers of waiters."""
REPEATS = {100: 5, FEW: 2, MANY: 1}
"""Measurements of each number of waiters in a round."""
GOAL_GROWTH = 1.5
"""Goal: a waiter's cost among MANY, as a multiple of its cost among FEW."""
LONG_SECONDS = 3600.0
TENANTS, NAMESPACES = 4, 20
BLOCKER = "blocker"

Costs = dict[str, dict[str, float]]
"""Round: microseconds per waiter by case, and by the number of waiters."""


class Spread(Enum):
    """Ways to distribute waiting requests over owners."""

    ONE_OWNER = "one owner"
    OWN_OWNERS = "own owners"

    def of(self, waiters: int) -> list[tuple[Hashable, str]]:
        """Return the owner and the namespace of each request."""
        if self is Spread.ONE_OWNER:
            return [("owner", "tenant/namespace")] * waiters
        return [
            (number, f"tenant-{number % TENANTS}/namespace-{number % NAMESPACES}")
            for number in range(waiters)
        ]


class Outcomes:
    """An observer that counts outcomes, to check that requests ended as expected."""

    def __init__(self) -> None:
        self._counts: Counter[AcquireOutcome] = Counter()

    def __call__(self, outcome: AcquireOutcome, waited_seconds: float, count: int) -> None:
        """Count the outcome of one or more requests."""
        self._counts[outcome] += count

    def expect(self, wanted: Mapping[AcquireOutcome, int], case: str) -> None:
        """Compare the counted outcomes with the expected ones.

        Raises:
            BenchError: Some requests ended with another outcome.
        """
        if self._counts != wanted:
            raise BenchError(f"{case}: requests ended as {dict(self._counts)}")


def occupied(
    policy: AdmissionPolicy, observer: Outcomes, timeout_seconds: float = LONG_SECONDS
) -> AsyncSemaphore:
    """Return a semaphore whose only permit is held by BLOCKER, with an unbounded queue."""
    rules = AdmissionRules(policy)
    semaphore = AsyncSemaphore(1, 0, timeout_seconds, None, observer, rules)
    semaphore.request(1, None, BLOCKER, "tenant/namespace")
    return semaphore


async def undisturbed(work: Coroutine[Any, Any, None]) -> int:
    """Run ``work`` without garbage collections; return its processor nanoseconds."""
    gc.disable()
    try:
        started = time.thread_time_ns()
        await work
        return time.thread_time_ns() - started
    finally:
        gc.enable()


def cost_figures(rounds: Sequence[Costs]) -> list[Figure]:
    """Return the cost of a waiter for each case, with MANY waiters."""
    return [
        Figure(name, "µs/waiter", [found[name][str(MANY)] for found in rounds])
        for name in rounds[0]
    ]


def growth_figure(name: str, rounds: Sequence[Costs], goal: float | None) -> Figure:
    """Return the ratio of a waiter's cost with MANY waiters to that with FEW."""
    times = [found[name][str(MANY)] / found[name][str(FEW)] for found in rounds]
    return Figure(f"{name} / of {FEW:,}", "times", times, goal, at_most=True)
