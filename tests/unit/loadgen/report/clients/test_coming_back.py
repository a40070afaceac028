"""Clients over time by family: those that were to start, were back, and were refused."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from loadgen.report.clients.coming_back import coming_back, families_of, family_row
from loadgen.report.page import render_report
from loadgen.report.panels import time_axis
from loadgen.results.reading import load_run
from tests.support.runs.family_runs import FAMILIES, write_family_run
from tests.support.runs.run_directories import STORMS, write_run

if TYPE_CHECKING:
    from loadgen.results.summary import Run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return load_run(write_family_run(tmp_path_factory.mktemp("runs") / "run", clients=10))


@pytest.fixture(scope="module")
def storm(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return load_run(write_run(tmp_path_factory.mktemp("runs") / "run", STORMS[0], clients=20))


def test_every_client_is_asked_for_once_and_those_that_gave_up_are_not_back(run: Run) -> None:
    found = {family: coming_back(run, family) for family in FAMILIES}
    assert {len(each.asked) for each in found.values()} == {10}
    assert {f: len(each.back) for f, each in found.items() if f != "once"} == dict.fromkeys(
        set(FAMILIES) - {"once"}, 10
    )
    assert len(found["once"].back) + len(found["once"].refused) == 10


def test_each_family_has_a_chart_on_one_scale_and_one_axis(run: Run, storm: Run) -> None:
    # When
    axis = time_axis([run, storm])
    row = family_row([run, storm], axis)
    # Then
    assert row is not None
    assert sorted(panel.title for panel in row.panels) == sorted(families_of([run]))
    assert len({(panel.y.high, panel.x) for panel in row.panels}) == 1
    # a run without families has no line
    assert {curve.run for panel in row.panels for curve in panel.curves} == {0}


def test_only_the_line_of_those_who_are_back_has_words_and_a_letter(run: Run) -> None:
    page = render_report([run])
    chart = re.search(r'data-panel="family-go">(.*?)</figure>', page, re.DOTALL)
    assert chart is not None
    assert chart[1].count("<polyline") == 3
    assert chart[1].count("<output") == chart[1].count('class="peak') == 1
    assert "10 of 10 back, " in chart[1]


def test_runs_without_families_have_no_row_of_them(storm: Run) -> None:
    assert family_row([storm], time_axis([storm])) is None
