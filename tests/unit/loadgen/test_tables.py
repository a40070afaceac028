"""The table fits a terminal and says every figure that an operator asks for."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from loadgen.run_directory import load_summary
from loadgen.tables import figure_rows, summary_tables
from tests.support.run_directories import edit_json, write_three_runs

if TYPE_CHECKING:
    from pathlib import Path

    from loadgen.report_data import RunSummary


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
    assert heap[0] == "not accounted"
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
