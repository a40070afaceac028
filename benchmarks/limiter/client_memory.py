"""The cost of the client's memory limit without contention: a reservation per sent message.

This includes a client's statistics (an observer that counts outcomes) and its consumers' triggers.
The benchmark also measures a prefetched message, which adjusts an existing reservation.
"""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING

from benchmarks.result import BenchOptions, BenchResult, Figure
from limiter.client_memory.memory_limit_controller import MemoryLimitController

if TYPE_CHECKING:
    from collections.abc import Callable

    from limiter.client_memory.reservation import ReserveOutcome

PAIRS_PER_SLICE = 10_000
SLICES_PER_SECOND = 50
MESSAGE_BYTES = 1_024
GOAL_MICROSECONDS = 1.0
JUDGED = "reserve and release"
LABELS = {
    JUDGED: "reserve + release",
    "counted": "a prefetched message, arrived + taken",
}


def run(options: BenchOptions) -> BenchResult:
    """Measure all rounds; in each, the two kinds of messages alternate in slices."""
    rounds = []
    for number in range(options.rounds):
        options.note(f"round {number + 1}")
        rounds.append(_round(max(1, round(options.seconds * SLICES_PER_SECOND))))
    return BenchResult(conclude(rounds), rounds=rounds)


def _round(slices: int) -> dict[str, float]:
    """Return the processor nanoseconds of a pair of calls, for each kind of message."""
    memory = _memory()
    kinds: dict[str, Callable[[MemoryLimitController], None]] = {
        JUDGED: _reserve_and_release,
        "counted": _arrive_and_take,
    }
    spent = dict.fromkeys(kinds, 0)
    gc.collect()
    for _ in range(slices):
        for name, pairs in kinds.items():
            started = time.thread_time_ns()
            pairs(memory)
            spent[name] += time.thread_time_ns() - started
    return {name: nanos / (slices * PAIRS_PER_SLICE) for name, nanos in spent.items()}


def _memory() -> MemoryLimitController:
    """Return a memory limit as a client has it: with statistics and two triggers, half used."""
    outcomes: dict[ReserveOutcome, int] = {}

    def observe(outcome: ReserveOutcome, _waited_seconds: float) -> None:
        outcomes[outcome] = outcomes.get(outcome, 0) + 1

    memory = MemoryLimitController(observer=observe)
    for _ in range(2):
        memory.register_trigger(gc.collect)
    memory.reserve_nowait(memory.statistics().limit_bytes // 2)
    return memory


def _reserve_and_release(memory: MemoryLimitController) -> None:
    for _ in range(PAIRS_PER_SLICE):
        memory.reserve_nowait(MESSAGE_BYTES).release()


def _arrive_and_take(memory: MemoryLimitController) -> None:
    reservation = memory.reserve_prefetched()
    for _ in range(PAIRS_PER_SLICE):
        reservation.adjust(MESSAGE_BYTES)
        reservation.adjust(-MESSAGE_BYTES)
    reservation.release()


def conclude(rounds: list[dict[str, float]]) -> list[Figure]:
    """Return the time of each kind of message; only the first kind has a goal."""
    return [
        Figure(
            label,
            "µs",
            [found[name] / 1_000 for found in rounds],
            GOAL_MICROSECONDS if name == JUDGED else None,
            at_most=True,
        )
        for name, label in LABELS.items()
    ]
