"""What stands above the charts of the pictures is what was measured."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from loadgen.report.pictures import draw_pictures
from loadgen.report.stuck.pictures import draw_stuck_pictures
from loadgen.results.reading import load_run
from tests.support.runs.run_directories import write_three_runs
from tests.support.runs.stuck_runs import write_stuck_runs

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def titles(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The titles of all charts of the pictures that are drawn, instead of files."""
    found: list[str] = []

    def save(figure: Any, path: Path, _: object) -> Path:
        found.extend(axes.get_title(loc="left") for axes in figure.axes)
        return path

    monkeypatch.setattr("loadgen.report.pictures.save", save)
    monkeypatch.setattr("loadgen.report.stuck.pictures.save", save)
    return found


def test_refusals_beside_a_stuck_peer_are_in_the_title(tmp_path: Path, titles: list[str]) -> None:
    runs = [load_run(directory) for directory in write_stuck_runs(tmp_path)]
    draw_stuck_pictures(runs, tmp_path)
    assert titles[:2] == [
        "As in Pulsar: 0 of 60 answered in that time, 30 refused",
        "Floodgate: 60 of 60 answered in that time",
    ]


def test_only_watched_servers_are_in_the_title(tmp_path: Path, titles: list[str]) -> None:
    # Given runs with a proxy, and without
    runs = [load_run(directory) for directory in write_three_runs(tmp_path, clients=20)]
    alone = [
        replace(run, summary=replace(run.summary, processes={"broker": broker}))
        for run in runs
        if (broker := run.summary.processes["broker"])
    ]
    # When
    draw_pictures(runs, tmp_path)
    draw_pictures(alone, tmp_path)
    # Then
    assert titles[0] == "Memory of broker and proxy over idle"
    assert titles[4] == "Memory of broker over idle"
