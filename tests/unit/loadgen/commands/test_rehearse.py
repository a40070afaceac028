"""The command of a rehearsal reads an operator's topics and files, and reports the outcome."""

import json
from html import escape
from pathlib import Path

import pytest
import yaml

from loadgen.errors import ExitCode
from loadgen.results.units import plain
from tests.support.runs.recorded_run import TASK, record_run, request

LISTED = [f"persistent://acme/ns{n % 2}/topic-{n}" for n in range(200)]


@pytest.fixture
def topics(tmp_path: Path) -> Path:
    file = tmp_path / "topics.txt"
    file.write_text("\n".join(LISTED))
    return file


def test_a_rehearsed_deploy_reports_recovery_memory_and_alerts(
    loadgen, topics: Path, tmp_path: Path
) -> None:
    families = ("--family", "java-watch=8", "--family", "cpp=4")
    words = ("--topics", topics, *families, "--event", "deploy", "--out", tmp_path / "out")
    code, said, _ = loadgen("rehearse", *words)
    assert code == ExitCode.PASSED
    assert "Assumed: 12 clients" in said
    assert "8 of 8" in said
    assert "broker: heap memory" in said
    assert "Alerts that fire: none of 13." in said
    assert "of 100 names in acme/ns0, takes" in said
    assert "--set seed=2 has others" in said
    page = (tmp_path / "out" / "rehearse-deploy" / "index.html").read_text()
    assert "What Prometheus shows" in page
    for name in ("acme/ns0", "acme/ns1"):
        assert f">{name}</td>" in page


def test_a_rehearsal_with_refused_clients_fails_and_reports_its_results_as_json(
    loadgen, topics: Path, tmp_path: Path
) -> None:
    conf = tmp_path / "broker.conf"
    conf.write_text("maxConcurrentLookupRequest=1\nmaxTopicListInFlightHeapMemSizeMB=3\n")
    words = ("--topics", topics, "--family", "cpp=4", "--broker-conf", conf, "--event", "deploy")
    code, out, _ = loadgen("rehearse", *words, "--out", tmp_path / "out", "--json")
    told = json.loads(out)
    assert code == ExitCode.THRESHOLDS
    (back,) = told["back"]
    assert (back["clients"], back["back"], back["last_seconds"]) == (4, 1, None)
    assert told["reasons"][0]["requests"] == 3
    assert "3 of 4 cpp not back within 60.0 s" in told["missed"]
    assert "clients.refused.rate <= 0.1%: 75 %" in told["missed"]
    assert (back["refused"], back["asked"]) == (3, 4)
    page, readme = (
        (tmp_path / "out" / "rehearse-deploy" / name).read_text()
        for name in ("index.html", "README.md")
    )
    for sentence in told["missed"]:
        assert escape(sentence) in page
        assert plain(sentence) in readme
    assert told["alerts"]["rules"] >= 9


def test_a_late_load_generator_ends_a_rehearsal_with_its_own_exit_code(
    loadgen, topics: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = record_run(tmp_path / "r", [request()], tasks=[{**TASK, "loop_lag_max_seconds": 9.0}])
    monkeypatch.setattr("loadgen.commands.rehearse.watched", lambda *_, **__: late)
    assert loadgen("rehearse", "--topics", topics)[0] == ExitCode.GENERATOR_LIMITED


def test_with_write_document_only_the_document_is_written(
    loadgen, topics: Path, tmp_path: Path
) -> None:
    file = tmp_path / "mine.yaml"
    settings = ("--set", "clients.java-watch.read.rate=1MB/s", "--set", "seed=7")
    words = ("--topics", topics, "--brokers", 2, "--event", "rolling", *settings)
    code, out, _ = loadgen("rehearse", *words, "--write-document", file)
    assert code == ExitCode.PASSED
    assert out == f"Play it with: loadgen run {file} --place virtual\n"
    written = yaml.safe_load(file.read_text())
    assert written["clients"][0]["read"]["rate"] == 1_000_000
    assert len(written["shocks"]) == 2
    assert written["seed"] == 7


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "say whose topics: --topics PATH or --admin-url URL"),
        (("--family", "cpp"), "write --family NAME=COUNT"),
        (("--event", "rolling"), "say --brokers 3"),
        (("--alerts", "nowhere.yml"), "nowhere.yml is no file of Prometheus' alerting rules"),
        (("--away", "soon"), "--away 'soon'"),
    ],
)
def test_invalid_rehearsal_options_are_refused_before_any_run(
    loadgen, arguments: tuple[str, ...], said: str, topics: Path, tmp_path: Path
) -> None:
    whose = ("--topics", str(topics)) if arguments else ()
    code, _, err = loadgen("rehearse", *whose, *arguments, "--out", tmp_path / "out")
    assert (code, said in err) == (ExitCode.USAGE, True), err
    assert not (tmp_path / "out").exists()
