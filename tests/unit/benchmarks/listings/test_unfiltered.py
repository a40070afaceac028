"""A figure is its median; a ratio is of one round; a round without its core does not count."""

from __future__ import annotations

from benchmarks.listings.unfiltered import (
    BARE,
    FORWARDER,
    JUDGED,
    LABELS,
    PRIVATE,
    PROXY,
    SHARED,
    Round,
    conclude,
    valid,
)
from benchmarks.result import Figure


def a_round(core_share: float = 0.99, **per_second: float) -> Round:
    rates = {BARE: 6000.0, SHARED: 3000.0, PRIVATE: 2400.0, FORWARDER: 2000.0, PROXY: 1800.0}
    rates |= per_second
    return {
        name: {
            "per_second": rates[name],
            "cpu_millis": 1000 / rates[name],
            "core_share": core_share,
            "client_core_share": 0.5,
        }
        for name in LABELS
    }


def figure(found: list[Round], name: str) -> Figure:
    return next(one for one in conclude(found, len(found)).figures if one.name == name)


def test_a_figure_is_the_median_of_its_rounds() -> None:
    # Given
    found = Figure("rate", "1/s", [1.0, 9.0, 2.0], goal=2.0)
    # Then
    assert (found.median, found.met) == (2.0, True)
    assert found.to_json()["lowest"] == 1.0
    assert found.to_json()["highest"] == 9.0


def test_a_figure_without_a_goal_is_neither_met_nor_missed() -> None:
    assert Figure("rate", "1/s", [1.0]).met is None


def test_a_goal_that_is_not_to_be_exceeded_is_met_by_less() -> None:
    assert Figure("time", "times", [1.4], goal=1.5, at_most=True).met is True
    assert Figure("time", "times", [1.6], goal=1.5, at_most=True).met is False


def test_a_ratio_compares_what_was_measured_in_the_same_round() -> None:
    # Given a machine that was twice as fast in the second round
    rounds = [a_round(), a_round(bare=12000.0, shared=6000.0)]
    # Then
    assert list(figure(rounds, "broker, shared buffers / bare").values) == [0.5, 0.5]


def test_the_proxy_is_held_against_a_forwarder() -> None:
    assert list(figure([a_round()], "proxy, shared buffers / forwarder").values) == [0.9]


def test_a_round_in_which_a_judged_server_lacked_its_core_is_left_out() -> None:
    # Given
    bad = a_round(shared=100.0)
    bad[SHARED]["core_share"] = 0.89
    # When
    result = conclude([a_round(), bad], 2)
    # Then
    rate = next(one for one in result.figures if one.name == LABELS[SHARED])
    assert list(rate.values) == [3000.0]
    assert result.remarks[0].startswith("Only 1 of 2 rounds were valid (2 wanted)")
    assert [one["valid"] for one in result.rounds] == [True, False]


def test_figures_of_no_valid_round_say_that_they_are_not_valid() -> None:
    result = conclude([a_round(core_share=0.5)], 1)
    assert result.remarks[0].endswith("The figures are of all rounds and not valid.")


def test_the_proxy_shares_its_core_and_does_not_make_a_round_invalid() -> None:
    # Given
    found = a_round()
    found[PROXY]["core_share"] = 0.3
    # Then
    assert PROXY not in JUDGED
    assert valid(found)
