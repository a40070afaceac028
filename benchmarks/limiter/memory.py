"""The memory of a waiting request, in the limiter and in asyncio's semaphore.

The benchmark traces Python's allocations while 10,000 requests start waiting on asyncio's loop;
timers are included.
"""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from benchmarks.limiter.waiting_queue import MANY, Outcomes, Spread, occupied
from benchmarks.result import BenchOptions, BenchResult, Figure
from limiter.admission.rules import AdmissionPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Hashable, Iterator, Mapping

    from limiter.semaphore.async_semaphore import AsyncSemaphore


def nobody(waiters: int) -> list[tuple[Hashable, str]]:
    """Return the owner and namespace of requests that have none."""
    return [(None, "")] * waiters


SIDES: dict[str, tuple[AdmissionPolicy, Callable[[int], list[tuple[Hashable, str]]]]] = {
    "fifo": (AdmissionPolicy.FIFO, nobody),
    "fifo, own owners": (AdmissionPolicy.FIFO, Spread.OWN_OWNERS.of),
    "fair": (AdmissionPolicy.FAIR, nobody),
    "fair, own owners": (AdmissionPolicy.FAIR, Spread.OWN_OWNERS.of),
}
YARDSTICK = "asyncio.Semaphore"
BARE_TASK = "a task that waits for a future"
TASKS = (BARE_TASK, YARDSTICK, *SIDES)


def run(options: BenchOptions) -> BenchResult:
    """Measure only once, because allocations do not vary."""
    options.note(f"{MANY:,} waiters")
    in_tasks = {side: asyncio.run(measure_tasks(side, MANY)) for side in TASKS}
    alone = {side: asyncio.run(measure_requests(side, MANY)) for side in SIDES}
    return BenchResult(conclude(in_tasks, alone), rounds=[{"in_tasks": in_tasks, "alone": alone}])


async def measure_requests(side: str, waiters: int) -> float:
    """Return the bytes of a waiting request that no task waits for."""
    policy, spread = SIDES[side]
    semaphore = occupied(policy, Outcomes())
    who = spread(waiters)
    with _traced() as allocated:
        kept = [semaphore.request(1, None, owner, namespace) for owner, namespace in who]
        found = allocated()
    semaphore.close()
    return found / len(kept)


async def measure_tasks(side: str, waiters: int) -> float:
    """Return the bytes of a waiting request and of the task that waits for it."""
    waits = _waits(side, waiters)
    with _traced() as allocated:
        tasks = [asyncio.create_task(wait) for wait in waits]
        await asyncio.sleep(0)
        found = allocated()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return found / waiters


def _waits(side: str, waiters: int) -> Iterator[Coroutine[Any, Any, object]]:
    """Yield the coroutine of each task, which waits for a permit."""
    if side == BARE_TASK:
        return (_wait_for_future() for _ in range(waiters))
    if side == YARDSTICK:
        taken = asyncio.Semaphore(0)
        return (taken.acquire() for _ in range(waiters))
    policy, spread = SIDES[side]
    return _acquires(occupied(policy, Outcomes()), spread(waiters))


def _acquires(
    semaphore: AsyncSemaphore, who: list[tuple[Hashable, str]]
) -> Iterator[Coroutine[Any, Any, object]]:
    return (semaphore.acquire(1, None, owner, namespace) for owner, namespace in who)


async def _wait_for_future() -> None:
    await asyncio.get_running_loop().create_future()


@contextmanager
def _traced() -> Iterator[Callable[[], int]]:
    """Yield a function that returns the number of bytes allocated since the block began."""
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        yield lambda: tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
        gc.enable()


def conclude(in_tasks: Mapping[str, float], alone: Mapping[str, float]) -> list[Figure]:
    """Return bytes per waiting request: with its task (and a ratio to asyncio's), and alone."""
    figures = [Figure(name, "B/waiter", [found]) for name, found in in_tasks.items()]
    figures += [
        Figure(f"{side} / asyncio's", "times", [in_tasks[side] / in_tasks[YARDSTICK]])
        for side in SIDES
    ]
    return figures + [
        Figure(f"{name}: the request alone", "B/waiter", [found]) for name, found in alone.items()
    ]
