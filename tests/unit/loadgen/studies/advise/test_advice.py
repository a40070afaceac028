"""An advice keeps its time: the search ends in the middle of a try, and says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loadgen.errors import UsageError
from loadgen.studies.advise.advice import advise, confirm, virtual_storms
from loadgen.studies.advise.goal import Goal, Outcome
from loadgen.studies.advise.report import verdict
from loadgen.studies.advise.search import OutOfTimeError
from tests.support.runs.recorded_run import event, record_run, request
from tests.unit.loadgen.studies.advise.asked import needs, question

if TYPE_CHECKING:
    from pathlib import Path

    from loadgen.documents.model import Document
    from loadgen.places.options import RunOptions
    from loadgen.studies.advise.limits import Setting

QUESTION = question(goal=Goal(back_within_seconds=65))


def test_a_storm_that_has_no_time_is_cut() -> None:
    with pytest.raises(OutOfTimeError):
        virtual_storms(QUESTION, seconds=0)(QUESTION.today)


def test_a_search_that_was_cut_says_so_with_the_best_that_it_found() -> None:
    # Given
    tried: list[Setting] = []

    def engine(setting: Setting) -> Outcome:
        tried.append(setting)
        if len(tried) > 2:
            raise OutOfTimeError
        return needs(5, 19)(setting)

    # When
    advice = advise(QUESTION, engine)
    # Then
    assert advice.met
    assert "before every limit was at its smallest: --minutes gives it more" in verdict(advice)


def test_without_time_for_a_single_storm_there_is_no_advice() -> None:
    with pytest.raises(UsageError, match=r"40 clients .* was cut after 120 s.*more --minutes"):
        advise(QUESTION, virtual_storms(QUESTION, seconds=0))


@pytest.mark.parametrize(("back", "storms", "word"), [(10.0, 1, "goal met"), (70.0, 3, "missed")])
def test_a_storm_that_misses_the_goal_is_run_again_with_larger_limits(
    back: float, storms: int, word: str, tmp_path: Path
) -> None:
    # Given
    advice = advise(QUESTION, needs(5, 19))
    tried: list[str] = []

    def run(document: Document, options: RunOptions) -> Path:
        if options.place == "processes":
            tried.append(document.servers.broker["maxTopicListInFlightDirectMemSizeMB"])
        return record_run(options.out / "r", [request()], [event("back", value=back)])

    # When
    found = confirm(advice, tmp_path, 400, run=run)
    # Then
    assert tried == ["20", "22", "25"][:storms]
    assert found.met is (storms == 1)
    assert word in verdict(found)


def test_time_that_is_too_short_for_a_storm_is_told(tmp_path: Path) -> None:
    advice = advise(QUESTION, needs(5, 19))
    found = confirm(advice, tmp_path, 30)
    assert "Not confirmed by a real storm: a storm may take 112 s, and 30 s were left" in verdict(
        found
    )
