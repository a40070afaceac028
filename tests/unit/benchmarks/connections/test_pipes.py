"""The figures of the benchmark of pipes."""

from __future__ import annotations

from benchmarks.connections.pipes import MODES, OFF, ON, SET, conclude


def test_a_ratio_is_of_one_round() -> None:
    # Given two rounds, of which the second was slow throughout
    def measured(rate: float) -> dict[str, float]:
        rates = {f"{way}_per_second": rate for way in ("in", "out")}
        return {**rates, "in_cpu_micros": 1.0, "out_cpu_micros": 2.0}

    rounds = [
        {mode: {OFF: measured(4 * r), ON: measured(3 * r), SET: measured(r)} for mode in MODES}
        for r in (100.0, 10.0)
    ]
    # When
    figures = {figure.name: figure for figure in conclude(rounds).figures}
    # Then
    for mode in MODES:
        for way in ("in", "out"):
            assert figures[f"{mode} {way}: {ON} / {OFF}"].values == [0.75, 0.75]
            assert figures[f"{mode} {way}: {SET} / {OFF}"].values == [0.25, 0.25]
            assert figures[f"{mode} {way}: {OFF}"].values == [400.0, 40.0]
    assert figures[f"CPU a message, single in: {OFF}"].median == 1.0
