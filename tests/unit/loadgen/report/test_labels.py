"""The labels under a report's charts can be read on a phone, too."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib.resources import files
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from loadgen.report.page import render_report
from loadgen.results.reading import load_run
from loadgen.results.summary import Requests
from tests.support.runs.run_directories import STORMS, write_run
from tests.support.runs.stuck_runs import write_stuck_run

if TYPE_CHECKING:
    from loadgen.results.summary import Run

CSS = (files("loadgen.report") / "report.css").read_text(encoding="utf-8")
PLOT = re.search(r"\n\.plot \{[^}]*padding: \S+ (\S+?)(?:rem)? \S+ \S+;", CSS)
# CSS pixels. A character is as wide as a digit of a wide typeface.
REM = 16.0
CHARACTER = 0.74 * REM * 0.6
RIGHT = float(PLOT[1]) * REM if PLOT else 0.0
PHONE_AREA = 400 - (2 * 0.85 + 3.6) * REM - RIGHT


@pytest.fixture(scope="module")
def storm(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return load_run(write_run(tmp_path_factory.mktemp("runs") / "run", STORMS[0], clients=20))


@pytest.fixture(scope="module")
def stuck(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return load_run(write_stuck_run(tmp_path_factory.mktemp("runs") / "run"))


def lasting(run: Run, seconds: float, requests: int = 100) -> Run:
    """The run with other requests: one after the other, the last of which ends by then."""
    ends = [seconds * number / requests for number in range(1, requests + 1)]
    starts = [0.99 * end for end in ends] if run.summary.stuck else [0.0] * requests
    return replace(run, requests=Requests(starts, ends, ["answered"] * requests))


def labels(page: str) -> list[list[tuple[float, str]]]:
    """Share of the width and text of each label under each chart."""
    axes = re.findall(r'class="x-axis"[^>]*>(.*?)</div>', page)
    found = [re.findall(r'left:([\d.]+)%">([^<]*)<', axis) for axis in axes]
    return [[(float(share) / 100, text) for share, text in axis] for axis in found]


def overlaps(page: str) -> list[tuple[str, str]]:
    return [
        (one[1], other[1])
        for axis in labels(page)
        for one, other in pairwise(axis)
        if (other[0] - one[0]) * PHONE_AREA < (len(one[1]) + len(other[1])) / 2 * CHARACTER
    ]


@pytest.mark.parametrize("seconds", [0.02, 0.3, 0.8, 1.0, 1.1, 3.0, 5.0, 17.0, 59.0, 61.0, 700.0])
def test_no_two_labels_overlap_however_long_the_runs_took(
    storm: Run, stuck: Run, seconds: float
) -> None:
    page = render_report([lasting(storm, seconds), lasting(stuck, seconds)])
    assert len(labels(page)) > 5
    assert overlaps(page) == []


@pytest.mark.parametrize("requests", [1, 2, 10, 1_000, 100_000])
def test_no_two_labels_overlap_however_many_requests_there_were(storm: Run, requests: int) -> None:
    assert overlaps(render_report([lasting(storm, 30.0, requests)])) == []


@pytest.mark.parametrize("seconds", [0.02, 0.8, 1.0, 700.0])
def test_no_label_is_cut_off_at_the_right(storm: Run, stuck: Run, seconds: float) -> None:
    page = render_report([lasting(storm, seconds), lasting(stuck, seconds)])
    beyond = [
        text
        for axis in labels(page)
        for share, text in axis
        if (share - 1) * PHONE_AREA + len(text) * CHARACTER / 2 > RIGHT
    ]
    assert beyond == []
