"""The names of runs, and what a table says of each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from loadgen.commands.spark.sql import cell, sql
from loadgen.errors import UsageError
from loadgen.sql.tables import run_names, run_row


def test_runs_are_called_as_their_directories_are() -> None:
    assert run_names([Path("/x/a"), Path("/y/b")]) == {Path("/x/a"): "a", Path("/y/b"): "b"}


def test_runs_of_one_name_are_told_apart_by_where_they_are() -> None:
    assert list(run_names([Path("/x/a"), Path("/y/a")]).values()) == ["x/a", "y/a"]


def test_a_run_that_is_named_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="name each once"):
        run_names([Path("/x/a"), Path("/x/a")])


def test_a_row_holds_the_figures_of_the_summary(tmp_path: Path) -> None:
    # Given
    summary = {"schema_version": 1, "answered": 3, "refused": {"a": 1, "b": 2},
               "latency_seconds": {"p50": 1, "max": 2.5}}  # fmt: skip
    (tmp_path / "summary.json").write_text(json.dumps(summary))
    # When
    row = run_row("mine", tmp_path)
    # Then
    assert (row[0], row[8], row[9]) == ("mine", 3, 3)
    assert row[-6:-1] == (1.0, None, None, None, 2.5)


@pytest.mark.parametrize(
    ("words", "query", "said"),
    [
        (["SELECT 1"], None, "name a run directory"),
        (None, "by-outcome", "name a run directory"),
        ([], None, "give the SQL after the runs"),
        (["."], None, "give the SQL after the runs"),
        (["."], "by-colour", "none of by-outcome"),
        (["gone"], "runs", "is not a run directory"),
        (["."], "runs", r"has no summary\.json"),
    ],
)
def test_a_question_that_cannot_be_asked_is_refused_before_spark_starts(
    words: list[str] | None,
    query: str | None,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=said):
        sql(words, query)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.3835249, "0.384"), (2.0, "2"), (170_000_000.0, "170,000,000"), (7, "7"), (None, "")],
)
def test_a_table_shows_three_digits_of_what_was_measured(value: object, shown: str) -> None:
    assert cell(value) == shown
