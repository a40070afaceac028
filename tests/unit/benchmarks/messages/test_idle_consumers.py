"""The figures of the benchmark of idle consumers."""

from __future__ import annotations

import os

from benchmarks.messages.idle_consumers import GOAL_KB, OWN, SHARED, conclude, resident_bytes


def test_broker_and_proxy_together_are_judged() -> None:
    # Given
    found = {
        SHARED: [{"broker": 1.0, "proxy": 0.5}],
        OWN: [{"broker": GOAL_KB, "proxy": 0.5}],
    }
    # When
    figures = {figure.name: figure for figure in conclude(found)}
    # Then
    judged = {name: figure.met for name, figure in figures.items() if figure.goal is not None}
    assert judged == {
        f"memory a consumer, {SHARED}: both": True,
        f"memory a consumer, {OWN}: both": False,
    }


def test_a_process_has_memory() -> None:
    assert resident_bytes(os.getpid()) > 1_000_000
