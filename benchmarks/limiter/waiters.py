"""The cost of a waiting request from queueing to its end, in a short and in a long queue.

Each case queues requests and ends all of them in the same way, on uvloop.
"""

from __future__ import annotations

import asyncio
import gc
import random
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import uvloop

from benchmarks.limiter.waiting_queue import (
    BLOCKER,
    GOAL_GROWTH,
    LONG_SECONDS,
    MANY,
    MAX_ROUNDS,
    REPEATS,
    Costs,
    Outcomes,
    Spread,
    cost_figures,
    growth_figure,
    occupied,
    undisturbed,
)
from benchmarks.result import BenchOptions, BenchResult, Figure
from limiter.admission.rules import AdmissionPolicy
from limiter.permits.permit import AcquireOutcome

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Hashable, Sequence

    from limiter.permits.account import Waiter
    from limiter.semaphore.async_semaphore import AsyncSemaphore

FULL_WAITERS = 100_000
"""Also measured, in the first round, with ``--full``."""
SHORT_SECONDS = 0.001
SEED = 442


@dataclass(frozen=True)
class Queue:
    """The waiting requests of one measurement, and their owners."""

    semaphore: AsyncSemaphore
    owners: Sequence[Hashable]
    waiters: Sequence[Waiter]


async def grant(queue: Queue) -> None:
    """Grant the requests one after the other: each release grants the next."""
    granted: list[Waiter] = []
    for waiter in queue.waiters:
        waiter.on_done(partial(granted.append, waiter))
    queue.semaphore.owners.cancel(BLOCKER)
    # The list grows during the loop: each release admits the next.
    for waiter in granted:
        queue.semaphore.release(waiter.result())


async def abandon(queue: Queue) -> None:
    """Cancel the requests one after the other, in random order."""
    leaving = list(queue.waiters)
    random.Random(SEED).shuffle(leaving)
    for waiter in leaving:
        queue.semaphore.abandon(waiter)


async def cancel_owners(queue: Queue) -> None:
    """Remove the owners, which cancels all their waiting requests."""
    for owner in dict.fromkeys(queue.owners):
        queue.semaphore.owners.cancel(owner)


async def time_out(queue: Queue) -> None:
    """Wait until all requests have timed out; this function's own timer is due after theirs."""
    await asyncio.sleep(2 * SHORT_SECONDS)


@dataclass(frozen=True)
class Ending:
    """A way in which requests end.

    Attributes:
        name: The name in the table.
        outcome: The outcome that the observer must receive.
        end: Ends all requests of a queue.
        timeout_seconds: The timeout of the requests in seconds.
    """

    name: str
    outcome: AcquireOutcome
    end: Callable[[Queue], Coroutine[Any, Any, None]]
    timeout_seconds: float = LONG_SECONDS


ENDINGS = (
    Ending("granted", AcquireOutcome.GRANTED, grant),
    Ending("abandoned", AcquireOutcome.CANCELLED, abandon),
    Ending("owner cancelled", AcquireOutcome.CANCELLED, cancel_owners),
    Ending("timed out", AcquireOutcome.TIMED_OUT, time_out, SHORT_SECONDS),
)


@dataclass(frozen=True)
class Case:
    """A way to queue and to end requests, measured with every number of waiters."""

    policy: AdmissionPolicy
    spread: Spread
    ending: Ending

    @property
    def name(self) -> str:
        """The name of the case in the table."""
        return f"{self.policy.value}, {self.spread.value}: {self.ending.name}"


CASES = tuple(Case(*parts) for parts in product(AdmissionPolicy, Spread, ENDINGS))
SHARED = "fair, one request of all: left"
"""Owners that wait for the same bytes, like clients requesting the same listing."""


def run(options: BenchOptions) -> BenchResult:
    """Measure every case in each round, with every number of waiters.

    Raises:
        BenchError: Some requests ended with a wrong outcome.
    """
    rounds: list[Costs] = []
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        for number in range(min(options.rounds, MAX_ROUNDS)):
            first_of_full = options.full and not rounds
            repeats = {**REPEATS, FULL_WAITERS: 1} if first_of_full else REPEATS
            options.note(f"round {number + 1}")
            rounds.append(runner.run(_round(repeats)))
    return BenchResult(conclude(rounds), rounds=rounds)


async def _round(repeats: dict[int, int]) -> Costs:
    costs = {case.name: await _costs(partial(measure, case), repeats) for case in CASES}
    return {**costs, SHARED: await _costs(measure_sharers, repeats)}


async def _costs(
    cost_of: Callable[[int], Awaitable[float]], repeats: dict[int, int]
) -> dict[str, float]:
    costs: dict[str, float] = {}
    gc.collect()
    for waiters, times in repeats.items():
        spent = [await cost_of(waiters) for _ in range(times)]
        costs[str(waiters)] = sum(spent) / times
    return costs


async def measure(case: Case, waiters: int) -> float:
    """Return the processor microseconds per waiter, from its request to its end.

    Raises:
        BenchError: Some requests ended with a wrong outcome.
    """
    outcomes = Outcomes()
    ending = case.ending
    semaphore = occupied(case.policy, outcomes, ending.timeout_seconds)
    spent = await undisturbed(_whole_lives(ending, semaphore, case.spread.of(waiters)))
    wanted = {ending.outcome: waiters}
    wanted[AcquireOutcome.GRANTED] = wanted.get(AcquireOutcome.GRANTED, 0) + 1
    outcomes.expect(wanted, case.name)
    return spent / 1000 / waiters


async def _whole_lives(
    ending: Ending, semaphore: AsyncSemaphore, who: Sequence[tuple[Hashable, str]]
) -> None:
    waiters = [semaphore.request(1, None, owner, namespace) for owner, namespace in who]
    await ending.end(Queue(semaphore, [owner for owner, _ in who], waiters))


async def measure_sharers(waiters: int) -> float:
    """Return microseconds per sharer of one waiting request, from its joining to its leaving.

    Raises:
        BenchError: The request did not end with its last sharer.
    """
    outcomes = Outcomes()
    semaphore = occupied(AdmissionPolicy.FAIR, outcomes)
    spent = await undisturbed(_shared_life(semaphore, waiters))
    outcomes.expect({AcquireOutcome.GRANTED: 1, AcquireOutcome.CANCELLED: 1}, SHARED)
    return spent / 1000 / waiters


async def _shared_life(semaphore: AsyncSemaphore, waiters: int) -> None:
    holder = semaphore.shared.new("tenant/namespace")
    semaphore.shared.join(holder, 0)
    semaphore.request(1, None, holder)
    for owner in range(1, waiters):
        semaphore.shared.join(holder, owner)
    for owner in range(waiters):
        semaphore.shared.leave(holder, owner)


def conclude(rounds: Sequence[Costs]) -> list[Figure]:
    """Return a waiter's cost in each case, and its growth with the number of waiters."""
    growths = [growth_figure(name, rounds, GOAL_GROWTH) for name in rounds[0]]
    largest = [
        Figure(f"{name}, {FULL_WAITERS:,} / {MANY:,}", "times", [times])
        for name, found in rounds[0].items()
        if str(FULL_WAITERS) in found
        for times in [found[str(FULL_WAITERS)] / found[str(MANY)]]
    ]
    return [*cost_figures(rounds), *growths, *largest]
