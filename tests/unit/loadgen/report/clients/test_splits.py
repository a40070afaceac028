"""Latencies are split by what requests differ in, and show no percentile that they cannot have."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.report.clients.splits import HEADS, SHARES, TOO_FEW, Split, render_splits, splits_of
from loadgen.results.reading import load_run
from tests.support.runs.family_runs import write_family_run

if TYPE_CHECKING:
    from loadgen.results.summary import Run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return load_run(write_family_run(tmp_path_factory.mktemp("runs") / "run", clients=10))


def test_the_parts_of_a_split_are_all_that_was_split(run: Run) -> None:
    # When
    parts: dict[str, int] = {}
    for split in splits_of(run):
        parts[split.group] = parts.get(split.group, 0) + split.requests
    # Then
    answered = pc.sum(pc.equal(run.rows["outcome"], "answered")).as_py()
    assert parts.pop("Outcome") == run.rows.num_rows
    assert parts == dict.fromkeys(
        ["Family, answered", "Tenant, answered", "Size of the answer"], answered
    )


def test_a_run_that_ended_with_nothing_has_no_percentile(run: Run) -> None:
    nothing = replace(run, rows=run.rows.slice(0, 0))
    assert splits_of(nothing) == []
    assert "<tbody></tbody>" in render_splits(nothing)


@given(st.lists(st.floats(0, 100), max_size=300))
def test_a_percentile_is_shown_if_a_request_lies_beyond_it(seconds: list[float]) -> None:
    # When
    cells = Split("", "", len(seconds), sorted(seconds)).cells()
    # Then
    assert len(cells) == len(HEADS)
    for share, cell in zip(SHARES[:-1], cells, strict=False):
        beyond = round(len(seconds) * (1 - share), 9)
        assert (cell == TOO_FEW) == (beyond < 1)
    assert (cells[-1] == TOO_FEW) == (not seconds)
