"""The cost of tasks that wait in ``acquire``: the limiter compared with asyncio's semaphore.

On both sides, every figure includes the task, its future and its event-loop iterations.
"""

from __future__ import annotations

import asyncio
import gc
from functools import partial
from typing import TYPE_CHECKING, Any

import uvloop

from benchmarks.limiter.waiting_queue import (
    BLOCKER,
    GOAL_GROWTH,
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
from benchmarks.processes import BenchError
from benchmarks.result import BenchOptions, BenchResult, Figure
from limiter.admission.rules import AdmissionPolicy
from limiter.permits.permit import AcquireOutcome

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Hashable, Iterator, Sequence

    from limiter.semaphore.async_semaphore import AsyncSemaphore

YARDSTICK = "asyncio.Semaphore"
FIFO, FAIR = "fifo", "fair, owners"
POLICIES = {FIFO: AdmissionPolicy.FIFO, FAIR: AdmissionPolicy.FAIR}
GRANTED, CANCELLED, REVERSED = "granted", "cancelled", "cancelled last first"
OUTCOMES = {
    GRANTED: AcquireOutcome.GRANTED,
    CANCELLED: AcquireOutcome.CANCELLED,
    REVERSED: AcquireOutcome.CANCELLED,
}
KEYS = tuple((side, ending) for ending in OUTCOMES for side in (YARDSTICK, FIFO, FAIR))


def run(options: BenchOptions) -> BenchResult:
    """Measure all sides in each round, with every number of tasks.

    Raises:
        BenchError: Some tasks ended with a wrong outcome.
    """
    rounds: list[Costs] = []
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        for number in range(min(options.rounds, MAX_ROUNDS)):
            options.note(f"round {number + 1}")
            rounds.append(runner.run(_round()))
    return BenchResult(conclude(rounds), rounds=rounds)


async def _round() -> Costs:
    costs: Costs = {name_of(*key): {} for key in KEYS}
    for waiters, times in REPEATS.items():
        gc.collect()
        for key in KEYS:
            spent = [await measure(*key, waiters) for _ in range(times)]
            costs[name_of(*key)][str(waiters)] = sum(spent) / times
    return costs


def name_of(side: str, ending: str) -> str:
    """Return the name that a case has in the table."""
    return f"{side}: {ending}"


async def measure(side: str, ending: str, waiters: int) -> float:
    """Return the processor microseconds per task, from its creation to its end.

    Raises:
        BenchError: Some tasks ended with a wrong outcome.
    """
    if side == YARDSTICK:
        return await undisturbed(_asyncio_tasks(ending, waiters)) / 1000 / waiters
    outcomes = Outcomes()
    semaphore = occupied(POLICIES[side], outcomes)
    who = Spread.OWN_OWNERS.of(waiters) if side == FAIR else [(None, "")] * waiters
    spent = await undisturbed(
        whole_lives(
            ending,
            (_use(semaphore, owner, namespace) for owner, namespace in who),
            partial(semaphore.owners.cancel, BLOCKER),
        )
    )
    wanted = {OUTCOMES[ending]: waiters}
    wanted[AcquireOutcome.GRANTED] = wanted.get(AcquireOutcome.GRANTED, 0) + 1
    outcomes.expect(wanted, name_of(side, ending))
    return spent / 1000 / waiters


async def _asyncio_tasks(ending: str, waiters: int) -> None:
    semaphore = asyncio.Semaphore(1)
    await semaphore.acquire()
    uses = (_use_asyncios(semaphore) for _ in range(waiters))
    await whole_lives(ending, uses, semaphore.release)


async def _use_asyncios(semaphore: asyncio.Semaphore) -> None:
    await semaphore.acquire()
    semaphore.release()


async def _use(semaphore: AsyncSemaphore, owner: Hashable, namespace: str) -> None:
    permit = await semaphore.acquire(1, None, owner, namespace)
    semaphore.release(permit)


async def whole_lives(
    ending: str, uses: Iterator[Coroutine[Any, Any, None]], unblock: Callable[[], None]
) -> None:
    """Start tasks that wait, and end them: cancel all, or admit the first one.

    Each admitted task then admits the next.
    """
    tasks = [asyncio.create_task(use) for use in uses]
    await asyncio.sleep(0)
    if ending == GRANTED:
        unblock()
    else:
        for task in tasks if ending == CANCELLED else reversed(tasks):
            task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    if any(task.cancelled() == (ending == GRANTED) for task in tasks):
        raise BenchError(f"tasks that should have been {ending} were not")


def conclude(rounds: Sequence[Costs]) -> list[Figure]:
    """Return the cost of a task on each side, our ratio to asyncio, and the growth with tasks."""
    many = str(MANY)
    ratios = [
        Figure(
            f"{name_of(side, ending)} / asyncio's",
            "times",
            [
                found[name_of(side, ending)][many] / found[name_of(YARDSTICK, ending)][many]
                for found in rounds
            ],
        )
        for side, ending in KEYS
        if side != YARDSTICK
    ]
    growths = [
        growth_figure(name_of(*key), rounds, None if key[0] == YARDSTICK else GOAL_GROWTH)
        for key in KEYS
    ]
    return [*cost_figures(rounds), *ratios, *growths]
