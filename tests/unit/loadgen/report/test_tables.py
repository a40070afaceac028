"""The table fits a terminal and says every figure that an operator asks for."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from loadgen.report.figures import figure_rows
from loadgen.report.tables import summary_tables
from loadgen.results.reading import load_summary
from tests.support.runs.run_directories import edit_json, forget_own_figures, write_three_runs

if TYPE_CHECKING:
    from pathlib import Path

    from loadgen.results.summary import RunSummary


@pytest.fixture
def directories(tmp_path: Path) -> list[Path]:
    return write_three_runs(tmp_path, clients=100)


def printed(summaries: list[RunSummary], columns: int = 200) -> str:
    console = Console(file=io.StringIO(), width=columns, color_system=None)
    for table in summary_tables(summaries):
        console.print(table)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def cells(summaries: list[RunSummary], measure: str) -> list[str]:
    return list(next(row.cells for row in figure_rows(summaries) if row.measure.strip() == measure))


@pytest.mark.parametrize("columns", [80, 100, 200])
def test_table_fits(directories: list[Path], columns: int) -> None:
    text = printed([load_summary(directory) for directory in directories], columns)
    assert max(len(line) for line in text.splitlines()) <= min(columns, 100)
    assert "…" not in text


def test_many_runs_become_several_tables(directories: list[Path]) -> None:
    summaries = [load_summary(directory) for directory in directories] * 3
    assert len(summary_tables(summaries)) == 3


def test_limit_of_zero_is_not_accounted(directories: list[Path]) -> None:
    summaries = [load_summary(directory) for directory in directories]
    heap = cells(summaries, "heap, proxy")
    assert heap[0] == "no limit"
    assert heap[1].endswith(" of 50 MB")


def test_refusals_are_counted_by_reason(directories: list[Path]) -> None:
    edit_json(directories[1] / "summary.json", refused={"TooManyRequests: full": 7, "Other": 2})
    summaries = [load_summary(directory) for directory in directories]
    assert cells(summaries, "refused") == ["0", "9", "0"]
    assert cells(summaries, "TooManyRequests: full") == ["0", "7", "0"]


def test_reason_in_brackets_is_printed_as_it_is(directories: list[Path]) -> None:
    edit_json(directories[1] / "summary.json", refused={"Odd: [red]": 1})
    assert "[red]" in printed([load_summary(directory) for directory in directories])


def test_failures_are_alarming_only_where_they_happened(directories: list[Path]) -> None:
    edit_json(directories[2] / "summary.json", wrong=3)
    rows = figure_rows([load_summary(directory) for directory in directories])
    wrong = next(row for row in rows if row.measure == "wrong answer")
    assert list(wrong.alarming) == [False, False, True]


def test_unwatched_process_says_so(directories: list[Path]) -> None:
    edit_json(directories[0] / "summary.json", processes={})
    assert cells([load_summary(directories[0])], "resident over idle, both") == ["not watched"]


def test_what_a_pulsar_does_not_tell_is_not_measured(directories: list[Path]) -> None:
    # Given
    forget_own_figures(directories[1])
    # When
    summaries = [load_summary(directory) for directory in directories]
    # Then
    assert cells(summaries, "answers not yet read, broker")[1] == "not measured"
    assert cells(summaries, "resident over idle, both")[1].endswith(" MB (highest scrape)")
    assert cells(summaries, "resident over idle, proxy")[1].endswith(" MB (highest scrape)")
    assert cells(summaries, "heap, proxy")[1].endswith(" of 50 MB (highest scrape)")
    assert "0 MB" not in [row.cells[1] for row in figure_rows(summaries)]


def test_growth_that_no_scrape_met_is_not_told_as_none(directories: list[Path]) -> None:
    # Given
    forget_own_figures(directories[1])
    processes = json.loads((directories[1] / "summary.json").read_text())["processes"]
    for process in processes.values():
        process["resident_over_first_scrape_bytes"] = 0
    edit_json(directories[1] / "summary.json", processes=processes)
    # When
    summaries = [load_summary(directories[1])]
    # Then
    for measure in ("resident over idle, both", "resident over idle, proxy"):
        assert cells(summaries, measure) == ["under 0.1 MB (highest scrape)"]


def test_a_server_without_the_limiters_figures_is_not_called_unaccounted(
    directories: list[Path],
) -> None:
    # Given a Pulsar before 4.1, or the wrong page
    processes = json.loads((directories[0] / "summary.json").read_text())["processes"]
    processes["broker"] |= {"heap_timeouts": None, "direct_timeouts": None}
    edit_json(directories[0] / "summary.json", processes=processes)
    # When
    summaries = [load_summary(directory) for directory in directories]
    # Then
    assert cells(summaries, "heap, broker")[0] == "not measured"
    assert cells(summaries, "heap, proxy")[0] == "no limit"


def test_late_generator_stands_beside_the_latencies_that_it_is_part_of(
    directories: list[Path],
) -> None:
    # Given
    measure = "of it: this generator sent late"
    summaries = [load_summary(directory) for directory in directories]
    assert measure not in printed(summaries)
    # When
    edit_json(
        directories[1] / "summary.json", generator_limited=True, start_error_seconds_max=0.073
    )
    rows = figure_rows([load_summary(directory) for directory in directories])
    # Then
    late = next(row for row in rows if row.measure == measure)
    assert list(late.cells) == ["in time", "up to 73 ms", "in time"]
    assert list(late.alarming) == [False, True, False]
    assert late.group == "Latency of answers"
