"""The figures of the messages benchmark with official clients."""

from __future__ import annotations

from benchmarks.messages.official_clients import conclude
from benchmarks.messages.rates import MEMORY, REAL, SQLITE


def measured(per_second: float) -> dict[str, float]:
    """Return what a client found in one round."""
    both = {f"{way}_per_second": per_second for way in ("in", "out")}
    return both | {f"{way}_cpu_micros": 1.0 for way in ("in", "out")}


def test_batches_are_compared_with_a_real_broker_in_the_same_round() -> None:
    # Given: the machine is twice as fast in the second round
    def found(speed: float) -> dict[str, dict[str, dict[str, float]]]:
        servers = {MEMORY: measured(90 * speed), SQLITE: measured(60 * speed)}
        of_both = {**servers, REAL: measured(100 * speed)}
        return {"Java client, single": of_both, "Java client, batched": of_both}

    # When
    figures = {figure.name: figure for figure in conclude([found(1.0), found(2.0)])}
    # Then
    assert figures[f"Java client, batched in: {MEMORY} / {REAL}"].values == [0.9, 0.9]
    judged = {name: figure.met for name, figure in figures.items() if figure.goal is not None}
    assert judged == {
        f"Java client, batched {way}: {server} / {REAL}": met
        for way in ("in", "out")
        for server, met in ((MEMORY, False), (SQLITE, True))
    }


def test_without_a_real_broker_and_without_clients_nothing_is_compared() -> None:
    assert not list(conclude([]))
    alone = list(conclude([{"Java client, single": {MEMORY: measured(1.0)}}]))
    assert [figure.unit for figure in alone] == ["messages/s", "us"] * 2
