"""What an uncontended permit costs, against asyncio's own semaphore on the same loop."""

from __future__ import annotations

import asyncio
import gc
import time
from typing import TYPE_CHECKING, Any

import uvloop

from benchmarks.result import BenchOptions, BenchResult, Figure
from limiter.semaphore import AsyncSemaphore

if TYPE_CHECKING:
    from collections.abc import Callable

PAIRS_PER_SLICE = 2_000
"""Pairs measured before the other side gets its turn: a few milliseconds, so that both sides of
a ratio meet the same machine."""
SLICES_PER_SECOND = 50
MAX_PERMITS = 100_000_000
PERMIT_BYTES = 1_000_000
TIMEOUT_SECONDS = 25.0
LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}


def run(options: BenchOptions) -> BenchResult:
    """Measure the rounds, both loops in each."""
    rounds = []
    for number in range(options.rounds):
        options.note(f"round {number + 1}")
        rounds.append({name: _round(factory, options) for name, factory in LOOPS.items()})
    figures = [figure for name in LOOPS for figure in _figures(name, rounds)]
    return BenchResult(figures, rounds=rounds)


def _round(
    factory: Callable[[], asyncio.AbstractEventLoop], options: BenchOptions
) -> dict[str, float]:
    slices = max(1, round(options.seconds * SLICES_PER_SECOND))
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(_interleaved(slices))


async def _interleaved(slices: int) -> dict[str, float]:
    """Measure both sides in turn and return nanoseconds a pair of each."""
    sides = {"asyncio_nanos": _asyncio_pairs, "floodgate_nanos": _floodgate_pairs}
    spent = dict.fromkeys(sides, 0)
    gc.collect()
    for _ in range(slices):
        for name, pairs in sides.items():
            started = time.perf_counter_ns()
            await pairs(PAIRS_PER_SLICE)
            spent[name] += time.perf_counter_ns() - started
    return {name: nanos / (slices * PAIRS_PER_SLICE) for name, nanos in spent.items()}


async def _asyncio_pairs(count: int) -> None:
    semaphore = asyncio.Semaphore(100)
    for _ in range(count):
        await semaphore.acquire()
        semaphore.release()


async def _floodgate_pairs(count: int) -> None:
    semaphore = AsyncSemaphore(MAX_PERMITS, 10_000, TIMEOUT_SECONDS)
    for _ in range(count):
        permit = await semaphore.acquire(PERMIT_BYTES)
        semaphore.release(permit)


def _figures(loop: str, rounds: list[dict[str, Any]]) -> list[Figure]:
    ours = [found[loop]["floodgate_nanos"] for found in rounds]
    theirs = [found[loop]["asyncio_nanos"] for found in rounds]
    ratios = [their / our for their, our in zip(theirs, ours, strict=True)]
    return [
        Figure(f"asyncio.Semaphore on {loop}", "µs/pair", [nanos / 1000 for nanos in theirs]),
        Figure(f"AsyncSemaphore on {loop}", "µs/pair", [nanos / 1000 for nanos in ours]),
        Figure(f"speed to asyncio.Semaphore on {loop}", "ratio", ratios),
    ]
