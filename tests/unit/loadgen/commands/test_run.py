"""``loadgen run``: few options, fitting help, and one verdict for exit code, junit and README."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from loadgen import __main__ as command_line
from loadgen.commands import run as run_command
from loadgen.documents.model import Document
from loadgen.errors import ExitCode
from loadgen.places.options import RunOptions
from tests.support.runs.recorded_run import TASK, record_run, request

MOST_OPTIONS, MOST_LINES = 15, 100
FINE = [request(client=n, due=n / 10) for n in range(10)]
OUTCOMES: dict[str, tuple[ExitCode, list[dict[str, Any]], dict[str, Any]]] = {
    "fine": (ExitCode.PASSED, FINE, {}),
    "nothing": (ExitCode.THRESHOLDS, [], {}),
    "lost": (ExitCode.THRESHOLDS, [request(outcome="timeout", due=n) for n in range(9)], {}),
    "empty": (ExitCode.THRESHOLDS, [request(topics=0)], {}),
    "wrong": (ExitCode.CORRECTNESS, [*FINE, request(outcome="wrong", reason="a name")], {}),
    "late": (ExitCode.GENERATOR_LIMITED, FINE, {"tasks": [{**TASK, "loop_lag_max_seconds": 9.0}]}),
    "interrupted": (ExitCode.INTERRUPTED, FINE, {"interrupted": True}),
    "aborted": (ExitCode.THRESHOLDS, FINE, {"aborted": "list.answered == 100%"}),
    "missed": (
        ExitCode.THRESHOLDS,
        FINE,
        {"document": {"clients": [{"name": "steady", "do": "list", "count": 1}],
                      "expect": ["list.response.p99 < 1ms"]}},
    ),
}  # fmt: skip


@pytest.fixture
def experiments(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Document, RunOptions]]:
    """The requested runs; each outcome is named by the run's prefix."""
    asked: list[tuple[Document, RunOptions]] = []

    def experiment(document: Document, options: RunOptions) -> Path:
        asked.append((document, options))
        _, rows, said = OUTCOMES[options.name.partition("-")[0]]
        options.out.mkdir(parents=True, exist_ok=True)
        return record_run(options.out / options.name, rows, **{"title": options.label, **said})

    monkeypatch.setattr(run_command, "experiment", experiment)
    return asked


def test_the_run_command_has_at_most_fifteen_options() -> None:
    options = [
        each for each in command_line.imported_command("run").params if each.name != "target"
    ]
    assert len(options) <= MOST_OPTIONS
    assert not any(each.hidden for each in options)


def test_the_help_of_the_run_command_fits_two_screens(loadgen, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    lines = loadgen("run", "--help")[1].splitlines()
    assert len(lines) <= MOST_LINES
    assert sum("loadgen run " in line for line in lines) >= 3


@pytest.mark.parametrize("name", OUTCOMES)
def test_exit_code_junit_readme_and_summary_report_the_same_verdict(
    loadgen, experiments, tmp_path: Path, name: str
) -> None:
    expected = OUTCOMES[name][0]
    code, out, err = loadgen("run", "storm", "--out", tmp_path, "--name", name)
    assert code == expected, err
    directory = tmp_path / name
    suite = ElementTree.parse(directory / "junit.xml").getroot()
    readme = (directory / "README.md").read_text()
    verdict = json.loads((directory / "summary.json").read_text())["verdict"]
    assert (suite.get("failures") == "0") == (code == 0)
    assert f"Exit code of `loadgen run`: {code}." in readme
    assert readme.startswith("# ✓") == (code == 0)
    assert verdict["exit_code"] == code
    assert verdict["word"] in out
    # and the last word names the worst finding
    assert (verdict["word"] in err.splitlines()[-1]) if code else not err
    assert (directory / "index.html").exists()


def test_repeated_runs_exit_with_the_worst_verdict(
    loadgen, experiments, tmp_path, monkeypatch
) -> None:
    # Given a first run that misses an expectation, and a second with wrong answers
    monkeypatch.setitem(OUTCOMES, "r", OUTCOMES["missed"])
    first = run_command.experiment

    def experiment(document: Document, options: RunOptions) -> Path:
        monkeypatch.setitem(OUTCOMES, "r", OUTCOMES["wrong" if experiments else "missed"])
        return first(document, options)

    monkeypatch.setattr(run_command, "experiment", experiment)
    code, out, err = loadgen("run", "storm", "--set", "repeats=3", "--out", tmp_path, "--name", "r")
    assert code == ExitCode.CORRECTNESS
    assert [options.name for _, options in experiments] == ["r-1", "r-2", "r-3"]
    assert {options.label for _, options in experiments} == {"r"}
    assert "median (spread) of 3 runs" in out
    assert err.splitlines()[-1].startswith("loadgen: wrong answers: 1 answer was wrong: a name.")


def test_with_json_only_the_summary_is_printed(loadgen, experiments, tmp_path: Path) -> None:
    where = ("--out", tmp_path, "--name", "fine", "--json")
    code, out, err = loadgen("run", "storm", *where)
    assert (code, err) == (0, "")
    assert json.loads(out) == json.loads((tmp_path / "fine/summary.json").read_text())
    told = json.loads(loadgen("run", "storm", "--set", "repeats=2", *where)[1])
    assert [each["run"] for each in told["runs"]] == ["r", "r"]
    assert told["schema_version"] == 1
    assert told["produced_by"]["command_line"].startswith("loadgen run storm --set repeats=2")


def test_failed_checks_are_printed_before_the_figures_of_a_run(
    loadgen, experiments, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = [request(outcome="refused", reason="TooManyRequests", due=n) for n in range(9)]
    monkeypatch.setitem(OUTCOMES, "refused", (ExitCode.THRESHOLDS, refused, {}))
    out = " ".join(loadgen("run", "storm", "--out", tmp_path, "--name", "refused")[1].split())
    places = [
        out.index(each)
        for each in (
            ": too little was answered",
            "✗ Of 9 requests of steady.list none got an answer",
            "✓ No answer was wrong",
            "refused TooManyRequests 9",
            "p50",
        )
    ]
    assert places == sorted(places)


def test_a_run_that_replaces_an_earlier_run_logs_the_replacement(
    loadgen, experiments, tmp_path: Path
) -> None:
    where = ("--out", tmp_path, "--name", "fine")
    assert loadgen("run", "storm", *where)[2] == ""
    assert loadgen("run", "storm", *where)[2] == (
        f"{tmp_path / 'fine'} is of an earlier run, which this one replaces\n"
    )


def test_a_dry_run_starts_no_run_and_reports_the_maximum_duration(
    loadgen, experiments, tmp_path: Path
) -> None:
    words = ("storm", "--set", "phases.measure=20s", "--dry-run", "--out", tmp_path)
    code, out, _ = loadgen("run", *words)
    assert (code, experiments) == (0, [])
    said = "storm: nothing was started. It takes at most 25.0 s (measuring 20.0 s, draining 5.00 s)"
    assert out.startswith(said)
    told = json.loads(loadgen("run", *words, "--json")[1])
    assert (told["schema_version"], told["seconds_at_most"]) == (4, 25.0)


def test_command_line_options_reach_the_run(loadgen, experiments, tmp_path: Path) -> None:
    words = (
        "--set clients.all.count=7 --tasks 3 --metrics-port 9123 --abort-early --place processes"
    )
    assert loadgen("run", "storm", *words.split(), "--out", tmp_path, "--name", "fine")[0] == 0
    document, options = experiments[0]
    assert [each.count for each in document.clients] == [7]
    assert (options.tasks, options.metrics_port, options.place) == (3, 9123, "processes")
    assert options.abort_early is not None
    assert document.written.startswith("# yaml-language-server")


def test_a_run_without_a_name_is_named_by_its_scenario_and_the_time(
    loadgen, experiments, tmp_path: Path
) -> None:
    with pytest.raises(KeyError, match="storm"):  # No outcome of this name.
        loadgen("run", "storm", "--out", tmp_path)
    assert experiments[0][1].name.startswith("storm-20")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("stom",), "there is no scenario 'stom'; did you mean storm?"),
        (("storm", "--place", "moon", "--json"), "'moon' is not one of 'processes', 'spark'"),
        (("storm", "--tasks", "900"), "--tasks 900 does not fit 200 clients"),
        (("storm", "--tasks", "0"), "--tasks 0: must be at least 1"),
        (("storm", "--metrics-port", "-1"), "--metrics-port -1: must be at least 1"),
        (("storm", "--service-url", "pulsar://10.0.0.1:6650"), "--yes-this-is-my-cluster"),
        (("storm", "--admin-url", "broker=http://a:1"), "name its --service-url as well"),
        (("storm", "--place", "virtual", "--abort-early"), "leave out --abort-early"),
        (
            ("storm", "--service-url", "pulsar://127.0.0.1:1"),
            "nobody watched the broker: add --admin-url",
        ),
        (
            ("storm", "--set", "expect+=lookup.response.p99 < 1s"),
            "no group of the scenario does lookup",
        ),
    ],
)
def test_invalid_options_are_refused_in_a_single_line_before_any_run(
    loadgen, experiments, words: tuple[str, ...], said: str
) -> None:
    code, _, err = loadgen("run", *words)
    assert (code, experiments) == (ExitCode.USAGE, [])
    assert len(err.splitlines()) == 1
    assert said in err


@pytest.mark.parametrize(
    ("option", "url", "said"),
    [
        ("--service-url", "http://x", "http://x is not of the form pulsar://host:port"),
        ("--service-url", "pulsar://127.0.0.1:99999", "a port is a number from 1 to 65535"),
        ("--service-url", "pulsar://127.0.0.1:0", "a port is a number from 1 to 65535"),
        ("--service-url", "pulsar://192.0.2.1", "is not an address of this machine's loopback"),
    ],
)
def test_the_format_of_a_service_url_is_checked_before_its_owner(
    loadgen, option, url, said
) -> None:
    code, _, err = loadgen("run", "storm", option, url)
    assert (code, said in err) == (2, True), err
