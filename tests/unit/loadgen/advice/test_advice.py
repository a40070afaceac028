"""An advice keeps its time: the search ends in the middle of a try, and says so."""

from __future__ import annotations

import pytest

from loadgen.advice.advice import Request, advise
from loadgen.advice.bounds import expected
from loadgen.advice.engine import engine_for
from loadgen.advice.goal import Goal, Outcome
from loadgen.advice.limits import Limits, Setting
from loadgen.advice.report import verdict
from loadgen.advice.search import OutOfTimeError
from loadgen.advice.workload import NamespaceShape, Readers, Workload
from loadgen.errors import UsageError

WORKLOAD = Workload(
    (NamespaceShape("acme/big", 40_000, 40_000 * 95),),
    {"once": 40},
    Readers(rate=500_000),
    operation_timeout_seconds=90,
)
REQUEST = Request(WORKLOAD, Goal(back_within_seconds=65), "pulsar", Setting(Limits()))


def test_a_storm_that_has_no_time_is_cut() -> None:
    with pytest.raises(OutOfTimeError):
        engine_for(REQUEST, seconds=0)(REQUEST.today)


def test_a_search_that_was_cut_says_so_with_the_best_that_it_found() -> None:
    # Given
    tried: list[Setting] = []

    def engine(setting: Setting) -> Outcome:
        tried.append(setting)
        if len(tried) > 2:
            raise OutOfTimeError
        return expected(WORKLOAD, REQUEST.goal, setting)

    # When
    advice = advise(REQUEST, engine)
    # Then
    assert advice.met
    assert "before every limit was at its smallest: --minutes gives it more" in verdict(advice)


def test_without_time_for_a_single_storm_there_is_no_advice() -> None:
    with pytest.raises(UsageError, match=r"40 clients .* was cut after 120 s.*more --minutes"):
        advise(REQUEST, engine_for(REQUEST, seconds=0))
