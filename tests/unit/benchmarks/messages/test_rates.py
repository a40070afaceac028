"""The figures of the messages benchmark."""

from __future__ import annotations

from benchmarks.messages.rates import BARE, BATCHED, MEMORY, PACED, SINGLE, SQLITE, conclude


def measured(cpu_micros: float) -> dict[str, float]:
    """Return what the client found in one round."""
    both = {f"{way}_per_second": 1000.0 for way in ("in", "out")}
    return both | {f"{way}_cpu_micros": cpu_micros for way in ("in", "out")}


def test_the_processor_time_of_the_servers_is_judged() -> None:
    # Given: single messages of the memory store cost too much
    costs = {BARE: 1.0, MEMORY: 31.0, SQLITE: 31.0}
    paced = {name: {"p50_millis": 0.5, "p99_millis": 6.0, "cpu_micros": 1.0} for name in costs}
    single = {name: measured(cost) for name, cost in costs.items()}
    found = {SINGLE: single, BATCHED: {name: measured(1.0) for name in costs}, PACED: paced}
    # When
    figures = {figure.name: figure for figure in conclude([found, found]).figures}
    # Then
    judged = {name: figure.met for name, figure in figures.items() if figure.goal is not None}
    assert judged == {
        f"CPU a message, single in: {MEMORY}": False,
        f"CPU a message, single out: {MEMORY}": False,
        f"CPU a message, single in: {SQLITE}": True,
        f"CPU a message, single out: {SQLITE}": True,
        f"CPU a message, batched in: {MEMORY}": True,
        f"CPU a message, batched out: {MEMORY}": True,
        f"CPU a message, batched in: {SQLITE}": True,
        f"CPU a message, batched out: {SQLITE}": True,
        f"1,000/s end to end, p50: {MEMORY}": True,
        f"1,000/s end to end, p99: {MEMORY}": False,
    }
