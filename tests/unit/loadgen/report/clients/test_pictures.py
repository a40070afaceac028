"""The picture of a restart storm is made of run directories alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from loadgen.commands.demo import picture
from loadgen.errors import UsageError
from loadgen.report.clients.pictures import draw_coming_back
from loadgen.results.reading import load_run
from loadgen.units import MB_BYTES
from tests.support.runs.family_runs import FAMILIES, write_family_run
from tests.support.runs.run_directories import STORMS, write_run

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


def test_a_run_without_a_picture_is_told_what_has_one(tmp_path: Path) -> None:
    storm = write_run(tmp_path / "storm", STORMS[0], clients=5)
    with pytest.raises(UsageError, match="storm has no picture of its own: name runs whose"):
        picture([storm], out=tmp_path / "images")


def test_each_family_has_a_chart_that_says_how_many_were_back(
    directory: Path, tmp_path: Path, figures: list[Any]
) -> None:
    # When
    draw_coming_back([load_run(directory)], tmp_path)
    # Then
    charts = {axes.get_title(loc="left"): axes for axes in figures[0].axes}
    assert charts["polite"].get_title(loc="right").startswith("10 of 10 back, ")
    assert {len(charts[family].lines) for family in FAMILIES} == {2}


def test_what_was_refused_and_what_the_limits_held_stand_beside_the_families(
    directory: Path, tmp_path: Path, figures: list[Any]
) -> None:
    # Given
    run = load_run(directory)
    # When
    draw_coming_back([run], tmp_path)
    # Then
    charts = {axes.get_title(loc="left"): axes for axes in figures[0].axes}
    refused = charts["Requests refused so far"]
    assert refused.lines[0].get_ydata()[-1] == len(run.requests.finish_times("refused"))
    direct = run.summary.processes["proxy"].direct
    assert direct is not None
    assert direct.limit_bytes is not None
    limit, held = charts["Direct memory of lists, proxy"].lines
    assert set(limit.get_ydata()) == {direct.limit_bytes / MB_BYTES}
    series = run.series("proxy", "direct.used")
    assert series is not None
    assert max(held.get_ydata()) == max(series.values) / MB_BYTES
    assert len(charts) == len(FAMILIES) + 3 + 1  # the last place of the grid is empty


def test_without_a_refusal_the_chart_says_none(
    directory: Path, tmp_path: Path, figures: list[Any]
) -> None:
    # Given
    answered = load_run(directory)
    rows = answered.rows.filter(pc.equal(answered.rows["outcome"], "answered"))
    pq.write_table(rows, directory / "requests.parquet")
    # When
    draw_coming_back([load_run(directory)], tmp_path)
    # Then
    charts = {axes.get_title(loc="left"): axes for axes in figures[0].axes}
    assert charts["Requests refused so far"].get_title(loc="right") == "0"
    assert max(charts["Requests refused so far"].lines[0].get_ydata()) == 0


def test_runs_beside_each_other_are_told_apart_by_a_legend(
    directory: Path, tmp_path: Path, figures: list[Any]
) -> None:
    # When
    draw_coming_back([load_run(directory)] * 2, tmp_path)
    # Then
    (legend,) = figures[0].legends
    assert [text.get_text() for text in legend.get_texts()][3:] == ["Restart storm of families"] * 2
    with pytest.raises(UsageError, match="4 runs have clients of one family"):
        draw_coming_back([load_run(directory)] * 4, tmp_path)
