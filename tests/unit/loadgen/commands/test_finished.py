"""``loadgen report`` and ``loadgen picture``: files of finished runs, from the tables alone."""

import json
from pathlib import Path

import pytest

from loadgen.commands.finished import picture, report, sql
from loadgen.commands.shown import fail_if_not_fine
from loadgen.errors import LoadgenError, UsageError
from loadgen.results.expectations import parse_expectation
from loadgen.results.judging import Judged
from loadgen.results.verdict import Finding, Level, Verdict
from tests.support.runs.recorded_run import record_run, request, sample


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    rows = [request(client=n, due=n / 10) for n in range(10)]
    samples = [sample("resident", at, 1e6) for at in (0.0, 1.0)]
    return [
        record_run(tmp_path / name, rows, samples=samples, title=f"{name}.") for name in ("a", "b")
    ]


def test_a_report_of_a_single_run_writes_its_page_summary_junit_and_readme(
    runs: list[Path], capsys
) -> None:
    report(runs[:1])
    assert {"index.html", "summary.json", "summary.csv", "junit.xml", "README.md"} <= {
        path.name for path in runs[0].iterdir()
    }
    verdict, place = capsys.readouterr().out.splitlines()
    assert verdict.startswith("a: ")
    assert place == f"Report: {runs[0] / 'index.html'}"


def test_a_report_of_several_runs_writes_a_single_page_and_no_page_per_run(
    runs: list[Path], capsys
) -> None:
    report(runs, as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert told["report"] == str(runs[0] / "report.html")
    assert [each["title"] for each in told["runs"]] == ["a.", "b."]
    assert not (runs[0] / "index.html").exists()


def test_a_picture_of_several_runs_shows_memory_over_idle_and_request_outcomes(
    runs, tmp_path
) -> None:
    picture(runs, out=tmp_path / "x.svg")
    text = (tmp_path / "x.svg").read_text()
    assert "Memory of all servers together, over idle" in text
    assert "What became of requests" in text


def test_a_query_is_sql_or_the_name_of_a_shipped_query(runs: list[Path], capsys) -> None:
    sql([*map(str, runs), "by-group"], csv=True)
    assert [line.split(",")[1] for line in capsys.readouterr().out.splitlines()[1:]] == [
        "steady"
    ] * 2
    sql([str(runs[0]), "SELECT count(*) AS n FROM requests"], as_json=True)
    assert json.loads(capsys.readouterr().out) == [{"n": 10}]


def test_a_query_may_be_read_from_a_file(runs: list[Path], tmp_path, capsys) -> None:
    file = tmp_path / "query.sql"
    file.write_text("-- how many\nSELECT\ncount(*)\nAS\nn\nFROM\nrequests;\n")
    sql([str(runs[0])], file=file, as_json=True)
    assert json.loads(capsys.readouterr().out) == [{"n": 10}]
    with pytest.raises(UsageError, match=r"--file .*none.sql cannot be read: No such file"):
        sql([str(runs[0])], file=tmp_path / "none.sql")


@pytest.mark.parametrize(
    ("question", "meant"),
    [
        ("SELECT * FROM request", "name request does not exist; there are the tables requests,"),
        (
            "SELECT outcom FROM requests",
            'column "outcom" not found in FROM clause; candidate bindings: "outcome"',
        ),
        ("SELECT r.outcom FROM measured r", 'column named "outcom"'),
        ("SELECT sample.at FROM samples", 'table "sample" not found; candidate tables: "samples"'),
        ("SELECT * FROM nothing_of_ours", "there are the tables requests, events, samples"),
    ],
)
def test_an_unknown_table_or_column_is_refused_with_the_existing_names(
    runs: list[Path], question: str, meant: str
) -> None:
    with pytest.raises(UsageError) as refused:
        sql([str(runs[0]), question])
    assert meant in str(refused.value)
    assert "\n" not in str(refused.value)


def test_without_a_query_the_shipped_queries_are_listed_or_shown(runs, capsys) -> None:
    sql()
    assert "by-group " in capsys.readouterr().out
    sql(show="by-group")
    assert "SELECT" in capsys.readouterr().out
    for words in ([str(runs[0])], ["by-group"]):
        with pytest.raises(UsageError, match="name run directories, then the question"):
            sql(words)


def test_a_run_of_an_older_loadgen_is_refused(tmp_path: Path) -> None:
    (tmp_path / "summary.json").write_text("{}")
    with pytest.raises(UsageError, match="an earlier loadgen wrote it"):
        report([tmp_path])


@pytest.mark.parametrize(
    ("level", "sentence", "said"),
    [
        (
            Level.UNRELIABLE,
            "The generator was the limit, not the server: 9 s late.",
            "not to be relied on: The generator was the limit, not the server: 9 s late.",
        ),
        (Level.MISSED, "a.p99 < 1s: 2 s", "expectations were missed: a.p99 < 1s: 2 s."),
    ],
)
def test_a_failed_verdict_raises_an_error_with_its_finding_and_exit_code(
    level: Level, sentence: str, said: str
) -> None:
    judged = [
        Judged(parse_expectation("a.list.response.p99 < 1s"), holds=False, value=2.0, found="2 s")
    ]
    with pytest.raises(LoadgenError) as failed:
        fail_if_not_fine(Verdict([Finding(level, "x", sentence)], judged))
    assert str(failed.value) == said
    assert failed.value.exit_code == level.exit_code
