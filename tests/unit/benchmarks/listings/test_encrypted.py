"""A ratio of encrypted listings is of one round, and the processor's time stands beside it."""

from __future__ import annotations

from benchmarks.listings.encrypted import BARE, BROKER, GOAL, conclude


def side(per_second: float, cpu_millis: float) -> dict[str, float]:
    return {"per_second": per_second, "cpu_millis": cpu_millis, "client_core_share": 0.75}


def test_rates_and_processor_time_are_compared_round_by_round() -> None:
    # Given: a machine that was twice as fast in the second round
    rounds = [
        {BARE: side(1000.0, 1.0), BROKER: side(900.0, 1.25)},
        {BARE: side(2000.0, 0.5), BROKER: side(1800.0, 0.625)},
    ]
    # When
    found = conclude(rounds)
    # Then
    ratio, cpu = [one for one in found.figures if one.unit == "ratio"]
    assert (list(ratio.values), ratio.goal, ratio.met) == ([0.9, 0.9], GOAL, True)
    assert (list(cpu.values), cpu.goal) == ([0.8, 0.8], None)
    assert found.remarks == ["The client had 0.75 of a core at most."]
