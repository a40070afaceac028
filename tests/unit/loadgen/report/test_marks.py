"""Restarts of servers are lines across all charts over time, with labels where there is room."""

from __future__ import annotations

import html
import re
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.report.chart_math import Axis
from loadgen.report.files.markdown import render_markdown
from loadgen.report.marks import Mark, labelled
from loadgen.report.page import render_report
from loadgen.results.reading import load_run
from loadgen.results.verdict import verdict_of
from tests.support.runs.run_directories import RESTARTS, STORMS, edit_json, write_run
from tests.support.runs.stuck_runs import write_stuck_run

if TYPE_CHECKING:
    from pathlib import Path

AXIS = Axis(0.0, 10.0, (0.0, 5.0, 10.0))
ROOM = 0.42


@given(st.lists(st.floats(0, 10), max_size=20))
def test_labels_that_are_shown_never_collide_and_the_first_is(moments: list[float]) -> None:
    marks = [Mark(0, at, "broker restarted") for at in moments]
    shown = list(labelled(marks, AXIS))
    spans = [(at - ROOM, at) if ends else (at, at + ROOM) for _, at, ends in shown]
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    assert all(begin >= -1e-9 and end <= 1 + 1e-9 for begin, end in spans)
    assert bool(shown) == bool(moments)


@pytest.fixture
def storm(tmp_path: Path) -> Path:
    return write_run(tmp_path / "storm", STORMS[0], clients=20)


def test_every_chart_over_time_has_every_restart(storm: Path, tmp_path: Path) -> None:
    # Given
    edit_json(storm / "summary.json", restarts=RESTARTS)
    stuck = write_stuck_run(tmp_path / "stuck")
    edit_json(stuck / "summary.json", restarts=RESTARTS[1:2])
    # When
    page = render_report([load_run(storm), load_run(stuck)])
    # Then
    charts = re.findall(r'<div class="plot marked">.*?</figure>', page, re.DOTALL)
    lines = [
        re.findall(r'<line class="mark-line run-(\d)".*?<title>(.*?)</title>', chart)
        for chart in charts
    ]
    of_the_storm = [
        ("0", "broker restarted, 3.00 s"),
        ("0", "proxy restarted, 4.00 s"),
        ("0", "broker restarted, 9.50 s"),
    ]
    assert lines.count(of_the_storm) == len(lines) - 1 >= 5
    assert [("1", "proxy restarted, 4.00 s")] in lines
    assert "upright dotted ones restarts of servers" in page


def test_the_figures_have_a_row_for_each_restart(storm: Path) -> None:
    # Given
    edit_json(storm / "summary.json", restarts=RESTARTS[:2])
    run = load_run(storm)
    # When
    told = render_markdown(run, verdict_of(run.document))
    # Then
    first = "broker at 3.00 s, ready after 1.25 s; every client answered again after 6.50 s"
    second = "proxy at 4.00 s, ready after 500 ms; not every client was answered again"
    assert f"| **Restarts of servers** | 1 | {first} |" in told
    assert f"|  | 2 | {second} |" in told
    assert second in html.unescape(render_report([run]))


def test_without_restarts_there_is_nothing_of_them(storm: Path) -> None:
    page = render_report([load_run(storm)])
    assert "mark-line" not in page.partition("</style>")[2]
    assert "estarts of servers" not in page
