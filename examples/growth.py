"""Simulation of a growth stall: requests hold memory for an estimate while they wait for more.

A listing holds a permit of the estimated size, finds out the actual size, and requests the
difference. When such requests together hold all permits of the limit, each waits for another one to
give up. This example runs the real limiter on a simulated clock.

Source: PIP-442, AsyncSemaphoreImpl.update.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from examples.simulation import Ending, VirtualClock, ask, ending_of, require_sound
from limiter.admission.rules import AdmissionPolicy, AdmissionRules
from limiter.semaphore.async_semaphore import AsyncSemaphore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limiter.permits.permit import Permit

LIMIT_PERMITS = 100
MAX_QUEUE_SIZE = 10_000
TIMEOUT_SECONDS = 25.0
STEP_SECONDS = 0.01
"""Duration of a listing under its estimate, and of its actual size afterwards."""
SPREAD_SECONDS = 0.01
"""With a seed, requests arrive within this time; each step lasts a half to three halves."""
NAMESPACE = "tenant/namespace"


@dataclass(frozen=True, slots=True)
class Case:
    """A case to simulate: the number of requests, with estimated and actual size in permits."""

    requests: int
    estimate: int
    actual: int


CASES = (Case(20, 24, 24), Case(20, 24, 25), Case(20, 10, 20), Case(40, 10, 20))


@dataclass(frozen=True, slots=True)
class Times:
    """The arrival time of a request, and the durations of its two steps, in seconds."""

    arrival: float = 0.0
    listing: float = STEP_SECONDS
    sending: float = STEP_SECONDS


@dataclass(frozen=True, slots=True)
class CaseFigures:
    """Results of a simulated case: the numbers of completed and refused requests, and when.

    Attributes:
        completed: Number of requests that got permits for their actual size.
        timed_out: Number of requests that gave up after the timeout, with or without an estimate.
        stalled: Number of requests whose growth was refused at once, as no release could end the
            stall.
        overdrafts: Number of times that growth was granted beyond the limit, to end a stall.
        first_completed_seconds: When the first request was completed; None if none was completed.
        last_completed_seconds: When the last request was completed; None if none was completed.
        high_water_permits: The largest number of permits held at the same time.
    """

    completed: int
    timed_out: int
    stalled: int
    overdrafts: int
    first_completed_seconds: float | None
    last_completed_seconds: float | None
    high_water_permits: int


def times_at_once(requests: int) -> list[Times]:
    """Return the same times for all requests, which arrive at the same moment."""
    return [Times()] * requests


def times_of_seed(requests: int, seed: int) -> list[Times]:
    """Return random times for all requests; the same seed always gives the same times."""
    chance = random.Random(seed)
    spread, step = SPREAD_SECONDS, STEP_SECONDS
    return [
        Times(
            arrival=chance.uniform(0, spread),
            listing=chance.uniform(0.5 * step, 1.5 * step),
            sending=chance.uniform(0.5 * step, 1.5 * step),
        )
        for _ in range(requests)
    ]


def simulate(case: Case, times: Sequence[Times], policy: AdmissionPolicy) -> CaseFigures:
    """Simulate the requests of a case with the real limiter.

    Raises:
        LimiterFaultError: The limiter lost a permit or waiter, or exceeded its limit.
    """
    run = _Run(case, policy)
    for number, one in enumerate(times):
        run.clock.call_at(one.arrival, run.arrive, number, one)
    run.clock.run()
    require_sound(run.semaphore, run.rules)
    return run.figures()


class _Run:
    """Simulates requests that acquire permits for an estimate, then the actual size, and send."""

    def __init__(self, case: Case, policy: AdmissionPolicy) -> None:
        self.clock = VirtualClock()
        self.rules = AdmissionRules(policy=policy)
        self.semaphore = AsyncSemaphore(
            LIMIT_PERMITS,
            MAX_QUEUE_SIZE,
            TIMEOUT_SECONDS,
            self.clock,
            rules=self.rules,
        )
        self._case = case
        self._completed_at: list[float] = []
        self._refused = dict.fromkeys(Ending, 0)

    def arrive(self, connection: int, times: Times) -> None:
        """Let a request acquire permits for its estimated size."""
        ask(
            partial(
                self.semaphore.request, self._case.estimate, owner=connection, namespace=NAMESPACE
            ),
            partial(self._list, times),
        )

    def _list(self, times: Times, permit: Permit | None, error: Exception | None) -> None:
        if permit is None:
            self._refused[ending_of(error)] += 1
            return
        self.clock.call_at(self.clock.now() + times.listing, self._grow, times, permit)

    def _grow(self, times: Times, permit: Permit) -> None:
        """Let a request acquire the missing permits, now that its actual size is known."""
        ask(
            partial(self.semaphore.request_update, permit, self._case.actual),
            partial(self._send, times, permit),
        )

    def _send(
        self, times: Times, estimate: Permit, permit: Permit | None, error: Exception | None
    ) -> None:
        if permit is None:
            self._refused[ending_of(error)] += 1
            self.semaphore.release(estimate)
            return
        self.clock.call_at(self.clock.now() + times.sending, self._complete, permit)

    def _complete(self, permit: Permit) -> None:
        self._completed_at.append(self.clock.now())
        self.semaphore.release(permit)

    def figures(self) -> CaseFigures:
        """Return the numbers of completed and refused requests, and the times of completion."""
        statistics = self.semaphore.statistics()
        completed_at = self._completed_at
        return CaseFigures(
            completed=len(completed_at),
            timed_out=self._refused[Ending.TIMED_OUT],
            stalled=self._refused[Ending.STALLED],
            overdrafts=statistics.overdrafts_total,
            first_completed_seconds=round(completed_at[0], 6) if completed_at else None,
            last_completed_seconds=round(completed_at[-1], 6) if completed_at else None,
            high_water_permits=statistics.high_water_permits,
        )
