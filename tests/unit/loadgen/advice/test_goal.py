"""A goal is said as people say it, and an outcome is judged by all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from loadgen.advice.goal import Goal, Outcome, misses, parse_megabytes, parse_seconds, parse_share
from loadgen.errors import UsageError
from loadgen.units import MB_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable


def test_a_goal_is_read_in_the_units_of_its_options() -> None:
    assert [parse_seconds("-", text) for text in ("60s", "2m", "500ms", "7")] == [60, 120, 0.5, 7]
    assert [parse_share("-", text) for text in ("0.1%", "5")] == [0.001, 0.05]
    assert [parse_megabytes("-", text) for text in ("512MB", "2GB", "64")] == [512, 2048, 64]


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (parse_seconds, "0s"),
        (parse_seconds, "soon"),
        (parse_seconds, "1d"),
        (parse_share, "101%"),
        (parse_share, "few"),
        (parse_megabytes, "1MB"),
        (parse_megabytes, "much"),
    ],
)
def test_what_is_no_goal_is_refused_in_one_sentence(
    parse: Callable[[str, str], Any], text: str
) -> None:
    with pytest.raises(UsageError, match=rf"--goal '{text}' is not a"):
        parse("--goal", text)


@pytest.mark.parametrize(
    ("outcome", "missed"),
    [
        (Outcome(1000, 999, 9.0, 2000, 2), []),
        (Outcome(1000, 998, 9.0, 2000, 0), ["2 of 1,000 not back within 60 s"]),
        (Outcome(1000, 1000, 9.0, 2000, 3), ["0.15 % refused"]),
        (
            Outcome(10, 10, 9.0, 10, 0, {"broker": 513 * MB_BYTES, "proxy": 512 * MB_BYTES}),
            ["the broker accounted 513 MB"],
        ),
    ],
)
def test_an_outcome_misses_what_it_falls_short_of(outcome: Outcome, missed: list[str]) -> None:
    assert misses(Goal(), outcome) == missed
