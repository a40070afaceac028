"""A goal is said as people say it, and an outcome is judged by all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from loadgen.advice.goal import (
    Goal,
    Outcome,
    misses,
    parse_megabytes,
    parse_refused,
    parse_seconds,
    parse_share,
)
from loadgen.advice.limits import Limits, Setting
from loadgen.advice.scenario import document_of
from loadgen.advice.workload import NamespaceShape, Workload
from loadgen.analysis.thresholds import parse_threshold
from loadgen.documents.reading import parse_document
from loadgen.errors import UsageError
from loadgen.units import MB_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable


def test_a_goal_is_read_in_the_units_of_its_options() -> None:
    assert [parse_seconds("-", text) for text in ("60s", "2m", "500ms", "7")] == [60, 120, 0.5, 7]
    assert [parse_seconds("-", text) for text in ("1ms", "24h")] == [0.001, 86_400]
    assert parse_seconds("-", "0s", least=0) == 0
    assert [parse_share("-", text) for text in ("0.1%", "5")] == [0.001, 0.05]
    assert [parse_refused("-", text) for text in ("0%", "0.0001%", "99%")] == [0, 1e-6, 0.99]
    assert [parse_megabytes("-", text) for text in ("512MB", "2GB", "64")] == [512, 2048, 64]
    assert [parse_megabytes("-", text) for text in ("2048kB", "1TB")] == [2, 1 << 20]


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (parse_seconds, "0s"),
        (parse_seconds, "soon"),
        (parse_seconds, "1d"),
        (parse_seconds, "-5s"),
        (parse_seconds, "0.9ms"),
        (parse_seconds, "86401s"),
        (parse_share, "101%"),
        (parse_share, "few"),
        (parse_share, "-1%"),
        (parse_megabytes, "1MB"),
        (parse_megabytes, "1KB"),
        (parse_megabytes, "-5MB"),
        (parse_megabytes, "1025GB"),
        (parse_megabytes, f"{'9' * 400}"),
        (parse_megabytes, "much"),
    ],
)
def test_what_is_no_goal_is_refused_in_one_sentence(
    parse: Callable[[str, str], Any], text: str
) -> None:
    with pytest.raises(UsageError, match=rf"--goal '{text[:40]}' is not a"):
        parse("--goal", text)


@pytest.mark.parametrize("text", ["100%", "99.5%", "0.00001%"])
def test_a_share_that_means_nothing_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(UsageError, match=r"is no goal: write 0%, or from 0.0001% to 99%"):
        parse_refused("--refused", text)


@pytest.mark.parametrize("within", ["1ms", "24h"])
@pytest.mark.parametrize("refused", ["0%", "0.0001%", "33.333333333%", "99%"])
@pytest.mark.parametrize("spread", ["0s", "0.0001ms", "24h"])
def test_whatever_is_a_goal_has_a_document_that_checks_it(
    within: str, refused: str, spread: str
) -> None:
    # Given
    goal = Goal(
        parse_seconds("-", within), parse_refused("-", refused), parse_megabytes("-", "1TB")
    )
    starts = parse_seconds("-", spread, least=0)
    shapes = (NamespaceShape("acme/big", 10, 1000),)
    workload = Workload(shapes, {"once": 100}, spread_seconds=starts)
    # When
    document = parse_document(document_of(workload, goal, Setting(Limits()), "pulsar"))
    # Then
    back, rate = map(parse_threshold, document.head.thresholds)
    assert back.percentile == pytest.approx(1 - goal.refused_share, abs=1e-9)
    assert (back.value, rate.value) == pytest.approx((goal.back_within_seconds, goal.refused_share))
    assert (
        min(86_400, goal.back_within_seconds + starts) <= document.scenario.phases.measure_seconds
    )


@pytest.mark.parametrize(
    ("outcome", "missed"),
    [
        (Outcome(1000, 999, 9.0, 2000, 2), []),
        (Outcome(1000, 998, 9.0, 2000, 0), ["2 of 1,000 not recovered within 60 s"]),
        (Outcome(1000, 1000, 9.0, 2000, 3), ["0.15 % refused"]),
        (
            Outcome(10, 10, 9.0, 10, 0, {"broker": 513 * MB_BYTES, "proxy": 512 * MB_BYTES}),
            ["the broker's limiter held 513 MB"],
        ),
    ],
)
def test_an_outcome_misses_what_it_falls_short_of(outcome: Outcome, missed: list[str]) -> None:
    assert misses(Goal(), outcome) == missed
