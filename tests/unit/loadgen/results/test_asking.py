"""User-defined queries see the run's tables only."""

import json
from pathlib import Path

import pytest

from loadgen.errors import UsageError
from loadgen.results.asking import as_csv, as_json, as_text, questions, run_sql
from loadgen.results.questions import QUERIES
from tests.support.runs.recorded_run import record_run, request


@pytest.fixture
def run(tmp_path: Path) -> Path:
    rows = [request(client=n, response_seconds=n + 0.5) for n in range(3)]
    return record_run(tmp_path / "a", [*rows, request(client=3, outcome="timeout")])


def test_query_rows_are_formatted_as_a_table_as_json_and_as_csv(run: Path) -> None:
    found = run_sql([run], "SELECT client, response_seconds AS s FROM requests WHERE client > 1")
    assert as_text(found) == "client      s\n     2    2.5\n     3  never\n"
    assert json.loads(as_json(found)) == [{"client": 2, "s": 2.5}, {"client": 3, "s": None}]
    assert as_csv(found) == "client,s\n2,2.5\n3,inf\n"
    assert json.loads(as_json(run_sql([run], "SELECT '\\xFF'::BLOB AS b"))) == [{"b": "ff"}]


def test_a_query_cut_at_the_maximum_of_rows_reports_that_more_rows_exist(run: Path) -> None:
    found = run_sql([run], "SELECT client FROM requests ORDER BY client", most=2)
    assert as_text(found).splitlines()[-1] == "... and more: 2 rows are shown"
    assert len(found.rows) == 2


def test_a_shipped_query_runs_on_each_run_separately(run: Path, tmp_path: Path) -> None:
    other = record_run(tmp_path / "b", [request(run="s")], run="s")
    found = run_sql([run, other], "by-operation")
    assert [row[:3] for row in found.rows] == [("r", "list", 4), ("s", "list", 1)]
    assert found.columns[:3] == ["run", "part", "requests"]
    assert run_sql([run, other], "SELECT count(*) FROM requests").rows == [(5,)]
    assert all(name in questions() for name in QUERIES)
    assert QUERIES["all"].title == "Counts by outcome and percentiles of all requests."
    assert QUERIES["by-group-operation"].title.endswith("of each group and operation.")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("colour", "there is no question 'colour': ask one of all, by-operation"),
        ("by-famly", "there is no question 'by-famly': ask one of by-family"),
        ("select", "there is no question 'select': ask one of .*, or SQL in quotes"),
        ("SELECT * FROM reqests", "does not exist; there are the tables requests, "),
        ("SELECT clint FROM requests", 'candidate bindings: "client"'),
        ("SELECT * FROM requests WHERE group = 'a'", 'write "group" in double quotes, or r.group'),
        ("SELECT group FROM requests GROUP BY 1", 'write "group" in double quotes, or r.group'),
        ("SELECT count(*) FROM requests GROUP BY", "syntax error .*; there are the tables"),
        ("SELECT colour FROM requests", "Binder Error: .*; candidate bindings: "),
        ("SELECT 1; SELECT 2", "a question is one SELECT"),
        ("COPY (SELECT 1) TO '{path}'", "a question is one SELECT"),
        ("EXPLAIN ANALYZE COPY (SELECT 1) TO '{path}'", "a question is one SELECT"),
        ("CREATE TABLE t AS SELECT 1", "a question is one SELECT"),
        ("ATTACH '{path}'", "a question is one SELECT"),
        ("SET enable_external_access = true", "a question is one SELECT"),
        ("SELECT * FROM read_text('{path}')", "file system operations are disabled"),
        ("SELECT * FROM '/etc/passwd'", "does not exist"),
    ],
)
def test_invalid_queries_writes_and_reads_of_other_files_are_refused(
    text, sentence, run, tmp_path
) -> None:
    path = tmp_path / "secret.csv"
    with pytest.raises(UsageError, match=sentence):
        run_sql([run], text.format(path=path))
    assert not path.exists()
