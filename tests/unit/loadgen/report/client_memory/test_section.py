"""Table, page and picture of a client's memory limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from loadgen.errors import UsageError
from loadgen.report.client_memory.pictures import draw_client_memory_pictures, read_series
from loadgen.report.figures import figure_rows
from loadgen.report.page import render_report
from loadgen.results.reading import load_run
from loadgen.scenarios.client_memory.summary import SERIES_NAME
from tests.support.runs.client_memory_runs import found, write_client_memory_run
from tests.support.runs.run_directories import STORMS, write_run

if TYPE_CHECKING:
    from pathlib import Path


def test_the_table_has_a_group_for_each_part(tmp_path: Path) -> None:
    run = load_run(write_client_memory_run(tmp_path / "run"))
    rows = [row for row in figure_rows([run.summary]) if "ueues" in row.group or "Pr" in row.group]
    cells = {(row.group, row.measure.strip()): row.cells[0] for row in rows}
    assert figure_rows([run.summary])[0].group == "Consumers' first messages"
    ours = "Queues by bytes (the default)"
    assert cells[ours, "most counted"] == "6.0 MB of 8.0 MB"
    assert cells[ours, "the rest, for each consumer"] == "0.1 MB"
    assert cells[ours, "slowest first message"] == "300 ms"
    assert cells[ours, "messages a second"] == "50"
    assert cells["Producers, server stopped", "delivered"] == "32 of 32"


def test_a_part_that_was_left_out_says_so(tmp_path: Path) -> None:
    none = [[0.0, None]]
    directory = write_client_memory_run(tmp_path / "run", found("bytes", first_messages=none))
    cells = {
        (row.group, row.measure): row.cells[0] for row in figure_rows([load_run(directory).summary])
    }
    assert cells["Upstream's queues", "most counted"] == "not played"
    assert cells["Producers, server stopped", "delivered"] == "not played"
    assert cells["Queues by bytes (the default)", "slowest first message"] == "1 got none"


def test_the_page_shows_the_picture_in_both_themes_and_what_was_judged(tmp_path: Path) -> None:
    # Given
    late = found("bytes", high_water_bytes=1 << 30)
    run = load_run(write_client_memory_run(tmp_path / "run", late, found("pulsar"), found("")))
    # When
    page = render_report([run])
    # Then
    assert page.count("data:image/png;base64,iVBOR") == 2
    assert "prefers-color-scheme: dark" in page
    assert '<dd class="bad">counted while consuming</dd>' in page
    assert "10 consumers took at most 1,024 MB of messages, by upstream&#x27;s rules 6.0 MB" in page
    assert "The client counted at most 1,024 MB; allowed are" in page


def test_beside_a_storm_the_section_has_its_own_words(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / "storm", STORMS[0], 10), write_client_memory_run(tmp_path / "run")]
    page = render_report([load_run(directory) for directory in runs])
    assert "<h2>A client's memory limit</h2><p>One client with a memory limit" in page


def test_times_of_a_picture_count_from_the_begin_of_a_part(tmp_path: Path) -> None:
    series = read_series(write_client_memory_run(tmp_path / "run") / SERIES_NAME)
    assert series["bytes"]["at_seconds"] == [0.0, 1.0, 2.0]
    assert series["producers"]["stopped"] == [False, True, False]


def test_a_picture_has_charts_of_the_parts_that_were_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given
    titles: list[str] = []

    def save(figure: Any, path: Path, _: object) -> Path:
        titles.extend(axes.get_title(loc="left") for axes in figure.axes)
        return path

    monkeypatch.setattr("loadgen.report.client_memory.pictures.save", save)
    run = load_run(write_client_memory_run(tmp_path / "run", found("bytes"), found("")))
    # When
    paths = draw_client_memory_pictures(run, tmp_path)
    # Then
    assert [path.name for path in paths] == ["client-memory.png", "client-memory-dark.png"]
    assert titles[: len(titles) // 2] == [
        "Queues by bytes (the default): 10 consumers",
        "Size of a queue; of all at most 20 messages",
        "Producers: 32 messages",
        "",
    ]


def test_another_run_or_lost_samples_are_refused(tmp_path: Path) -> None:
    storm = load_run(write_run(tmp_path / "storm", STORMS[0], 10))
    with pytest.raises(UsageError, match="is no run of client-memory"):
        draw_client_memory_pictures(storm, tmp_path)
    directory = write_client_memory_run(tmp_path / "run")
    (directory / SERIES_NAME).unlink()
    with pytest.raises(UsageError, match=r"client-memory\.parquet cannot be read"):
        draw_client_memory_pictures(load_run(directory), tmp_path)
