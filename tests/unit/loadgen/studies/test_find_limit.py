"""A limit is the start of missed expectations, reported with a bracket."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.documents.model import Document
from loadgen.errors import ExitCode, LoadgenError, UsageError
from loadgen.studies.find_limit import Range, bisect, find_limit, in_words, parse_range
from loadgen.studies.points import Point, Study
from tests.support.runs.recorded_run import request
from tests.unit.loadgen.studies.fake_experiment import FakeExperiment

TEXT = """
clients: [{name: steady, do: list, count: 2}]
expect: [list.answered == 100%]
"""
COUNTS = Range("clients.steady.count", 1, 64)


def study(tmp_path: Path, text: str = TEXT) -> Study:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    return Study(str(file), out=tmp_path / "out")


def up_to_forty(document: Document) -> list[dict[str, Any]]:
    bad = "refused" if document.clients[0].count > 40 else "answered"
    return [request(outcome=bad)]


def test_the_limit_is_the_highest_value_that_meets_the_expectations(tmp_path: Path) -> None:
    probed: list[Point] = []
    limit = find_limit(study(tmp_path), COUNTS, 0.05, probed.append, FakeExperiment(up_to_forty))
    assert (limit.kind, limit.passes) == ("highest", 40)
    assert limit.fails in (41, 42)
    assert [point.values[COUNTS.path] for point in probed] == [value for value, _ in limit.probes]
    assert in_words(probed[1]).startswith(
        "clients.steady.count=64: expectations were missed; list.answered == 100%: 0 %"
    )


def test_a_value_with_a_unit_is_tried_and_reported_with_the_unit(tmp_path: Path) -> None:
    def up_to_five_minutes(document: Document) -> list[dict[str, Any]]:
        return [request(outcome="refused" if document.phases.measure > 300 else "answered")]

    wanted = parse_range("phases.measure=1m..10m")
    limit = find_limit(study(tmp_path), wanted, run=FakeExperiment(up_to_five_minutes))
    assert [value for value, _ in limit.probes[:2]] == ["1m", "10m"]
    assert limit.passes.endswith("m")
    assert 4.7 < float(limit.passes[:-1]) <= 5
    assert f"is {limit.passes}; {limit.fails} does not" in limit.sentence


def test_a_restarted_search_reuses_its_runs(tmp_path: Path) -> None:
    few = Range(COUNTS.path, 32, 64)
    first = find_limit(study(tmp_path), few, run=FakeExperiment(up_to_forty))
    run = FakeExperiment(up_to_forty)
    assert find_limit(study(tmp_path), few, run=run) == first
    assert not run.run


def test_a_probe_with_wrong_answers_ends_the_search(tmp_path: Path) -> None:
    run = FakeExperiment(lambda document: [request(outcome="wrong")])
    with pytest.raises(LoadgenError, match=r"no limit was found: at clients\.steady") as caught:
        find_limit(study(tmp_path), COUNTS, run=run)
    assert caught.value.exit_code is ExitCode.CORRECTNESS


def test_a_document_without_expectations_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expects nothing"):
        find_limit(study(tmp_path, TEXT.partition("expect")[0]), COUNTS, run=FakeExperiment())


@given(
    low=st.integers(0, 50), width=st.integers(2, 5000), share=st.floats(0, 1), rising=st.booleans()
)
def test_the_bracket_of_whole_numbers_is_exact(low, width, share, *, rising) -> None:
    last = low + int(share * (width - 1))
    limit = bisect(Range("x", low, low + width), lambda v: (v <= last) is rising, 0.0)
    assert {limit.passes, limit.fails} == {last, last + 1}
    assert limit.passes == (last if rising else last + 1)
    assert limit.kind == ("highest" if rising else "smallest")


@pytest.mark.parametrize(("passes", "kind"), [(True, "all"), (False, "none")])
def test_if_both_ends_pass_or_both_ends_fail_there_is_no_limit(kind: str, *, passes: bool) -> None:
    limit = bisect(Range("x", 1.5, 9.5), lambda value: passes, 0.05)
    assert (limit.kind, len(limit.probes)) == (kind, 2)
    assert "no limit between them" in limit.sentence


def test_a_search_for_a_limit_at_zero_ends() -> None:
    assert len(bisect(Range("x", 0.0, 0.5), lambda value: value <= 0, 0.05).probes) <= 60
