"""The cost of an uncontended permit, compared with asyncio's semaphore on the same loop.

The limiter weighs bytes, times out, tracks holders and notifies an observer. asyncio's semaphore
only counts permits.
"""

from __future__ import annotations

import asyncio
import gc
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import uvloop

from benchmarks.result import BenchOptions, BenchResult, Figure
from limiter.admission.rules import AdmissionPolicy, AdmissionRules
from limiter.clock import LoopClock
from limiter.memory.dual_limiter import AsyncDualMemoryLimiter, LimitType, MemoryLimit
from limiter.metrics.outcome_counts import OutcomeCounts
from limiter.semaphore.async_semaphore import AsyncSemaphore

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

PAIRS_PER_SLICE = 1_000
"""Pairs per side before alternating: a few milliseconds, so both sides of a ratio see the same
machine state.
"""
SLICES_PER_SECOND = 12
MAX_PERMITS = 100_000_000
PERMIT_BYTES = 1_000_000
QUEUE_SIZE = 10_000
TIMEOUT_SECONDS = 25.0
OWNER = object()
NAMESPACE = "tenant/namespace"
GOAL_TIMES = 1.5
"""Goal for JUDGED: a pair's time as a multiple of asyncio.Semaphore's."""
YARDSTICK, JUDGED = "asyncio", "fifo"
LABELS = {
    YARDSTICK: "asyncio.Semaphore",
    JUDGED: "AsyncSemaphore, fifo",
    "fifo_owner": "AsyncSemaphore, fifo, owner",
    "fair_owner": "AsyncSemaphore, fair, owner",
    "dual_owner": "dual limiter, fair, owner",
}
LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}


def run(options: BenchOptions) -> BenchResult:
    """Measure all sides in each round, on both kinds of event loop."""
    rounds = []
    for number in range(options.rounds):
        options.note(f"round {number + 1}")
        rounds.append({name: _round(factory, options) for name, factory in LOOPS.items()})
    figures = [figure for name in LOOPS for figure in conclude(name, rounds)]
    return BenchResult(figures, rounds=rounds)


def _round(
    factory: Callable[[], asyncio.AbstractEventLoop], options: BenchOptions
) -> dict[str, float]:
    slices = max(1, round(options.seconds * SLICES_PER_SECOND))
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(_interleaved(slices))


async def _interleaved(slices: int) -> dict[str, float]:
    """Measure all sides alternately; return processor nanoseconds per permit, by side."""
    spent = dict.fromkeys(LABELS, 0)
    gc.collect()
    for _ in range(slices):
        for name, pairs in _sides().items():
            started = time.thread_time_ns()
            await pairs(PAIRS_PER_SLICE)
            spent[name] += time.thread_time_ns() - started
    return {name: nanos / (slices * PAIRS_PER_SLICE) for name, nanos in spent.items()}


def _sides() -> dict[str, Callable[[int], Awaitable[None]]]:
    return {
        YARDSTICK: _asyncio_pairs,
        JUDGED: partial(_pairs, _semaphore(AdmissionPolicy.FIFO)),
        "fifo_owner": partial(_owned_pairs, _semaphore(AdmissionPolicy.FIFO)),
        "fair_owner": partial(_owned_pairs, _semaphore(AdmissionPolicy.FAIR)),
        "dual_owner": _dual_pairs,
    }


def _semaphore(policy: AdmissionPolicy) -> AsyncSemaphore:
    """Return a semaphore of the limiter with the observer that servers use."""
    clock = LoopClock()
    observer = partial(OutcomeCounts(clock).observe, LimitType.HEAP_MEMORY)
    rules = AdmissionRules(policy)
    return AsyncSemaphore(MAX_PERMITS, QUEUE_SIZE, TIMEOUT_SECONDS, clock, observer, rules)


async def _asyncio_pairs(count: int) -> None:
    semaphore = asyncio.Semaphore(100)
    for _ in range(count):
        await semaphore.acquire()
        semaphore.release()


async def _pairs(semaphore: AsyncSemaphore, count: int) -> None:
    for _ in range(count):
        permit = await semaphore.acquire(PERMIT_BYTES)
        semaphore.release(permit)


async def _owned_pairs(semaphore: AsyncSemaphore, count: int) -> None:
    for _ in range(count):
        permit = await semaphore.acquire(PERMIT_BYTES, None, OWNER, NAMESPACE)
        semaphore.release(permit)


async def _dual_pairs(count: int) -> None:
    limit = MemoryLimit(MAX_PERMITS, QUEUE_SIZE, TIMEOUT_SECONDS)
    clock = LoopClock()
    rules = AdmissionRules(AdmissionPolicy.FAIR)
    limiter = AsyncDualMemoryLimiter(limit, limit, clock, OutcomeCounts(clock).observe, rules)
    heap = LimitType.HEAP_MEMORY
    for _ in range(count):
        permit = await limiter.acquire(heap, PERMIT_BYTES, None, OWNER, NAMESPACE)
        limiter.release(permit)


def conclude(loop: str, rounds: list[dict[str, Any]]) -> list[Figure]:
    """Return the times on one event loop, and their ratios to asyncio's semaphore."""
    nanos = {name: [found[loop][name] for found in rounds] for name in LABELS}
    figures = [
        Figure(f"{loop}: {label}", "µs/pair", [one / 1000 for one in nanos[name]])
        for name, label in LABELS.items()
    ]
    for name, label in LABELS.items():
        if name == YARDSTICK:
            continue
        times = [ours / theirs for ours, theirs in zip(nanos[name], nanos[YARDSTICK], strict=True)]
        goal = GOAL_TIMES if name == JUDGED else None
        figures.append(Figure(f"{loop}: {label} / asyncio's", "times", times, goal, at_most=True))
    return figures
