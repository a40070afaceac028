"""The picture of a restart storm is made of run directories alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from loadgen.commands.demo import picture
from loadgen.errors import UsageError
from loadgen.report.clients.pictures import draw_coming_back
from loadgen.results.reading import load_run
from tests.support.runs.family_runs import write_family_run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return write_family_run(tmp_path / "run", clients=10)


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The figures of the pictures that are drawn, instead of files."""
    found: list[Any] = []

    def save(figure: Any, path: Path, _: object) -> Path:
        found.append(figure)
        return path

    monkeypatch.setattr("loadgen.report.clients.pictures.save", save)
    return found


def test_the_picture_of_a_run_is_written_for_light_and_dark_pages(
    directory: Path, tmp_path: Path
) -> None:
    picture([directory], out=tmp_path / "images")
    names = {path.name for path in (tmp_path / "images").iterdir()}
    assert names == {"restart-storm.png", "restart-storm-dark.png"}


def test_each_family_has_a_chart_that_says_how_many_were_back(
    directory: Path, tmp_path: Path, figures: list[Any]
) -> None:
    # When
    draw_coming_back([load_run(directory)], tmp_path)
    # Then
    charts = {axes.get_title(loc="left"): axes for axes in figures[0].axes}
    assert charts["polite"].get_title(loc="right").startswith("10 of 10 back, ")
    assert len(charts) == 6
    assert {len(axes.lines) for axes in charts.values()} == {2}


def test_runs_beside_each_other_are_told_apart_by_a_legend(
    directory: Path, tmp_path: Path, figures: list[Any]
) -> None:
    # When
    draw_coming_back([load_run(directory)] * 2, tmp_path)
    # Then
    (legend,) = figures[0].legends
    assert [text.get_text() for text in legend.get_texts()][2:] == ["Restart storm of families"] * 2
    with pytest.raises(UsageError, match="4 runs have clients of one family"):
        draw_coming_back([load_run(directory)] * 4, tmp_path)
