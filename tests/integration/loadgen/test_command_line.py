"""``loadgen run``: exit code, junit, README and summary agree on the verdict."""

import json
import socket
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from loadgen.__main__ import main
from loadgen.errors import ExitCode
from loadgen.results import verdict as verdicts
from tests.support.peers.stand_in_broker import StandInBroker, running, topic_names

SPACES = [f"load/ns-{number}" for number in range(100)]
NAMES = {space: topic_names(space, 3) for space in SPACES}
SCENARIO = """
topics: {of: [%s]}
clients: [{name: all, do: list, count: 100, timeout: 400ms}]
phases: {measure: 500ms, drain: 500ms}
"""
LOADGEN = (sys.executable, "-m", "loadgen")


def code_of(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["loadgen", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def told_by(directory: Path) -> tuple[int, bool, bool]:
    """Return summary.json's exit code, and whether junit.xml and README.md report success."""
    verdict = json.loads((directory / "summary.json").read_text())["verdict"]
    suite = ElementTree.parse(directory / "junit.xml").getroot()
    readme = (directory / "README.md").read_text()
    code = int(readme.partition("Exit code of `loadgen run`: ")[2].partition(".")[0])
    assert code == verdict["exit_code"]
    return code, suite.get("failures") == "0", readme.startswith("# ✓")


def test_a_shipped_scenario_runs_against_its_own_servers(tmp_path: Path) -> None:
    words = ["--set", "clients.all.count=6", "--set", "topics.per_namespace=20", "--json"]
    done = subprocess.run(
        [*LOADGEN, "run", "storm", *words, "--out", str(tmp_path), "--name", "storm"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    # On a busy machine the generator may be the limit.
    assert done.returncode in {ExitCode.PASSED, ExitCode.GENERATOR_LIMITED}, done.stderr
    summary, passed = json.loads(done.stdout), done.returncode == ExitCode.PASSED
    assert summary == json.loads((tmp_path / "storm/summary.json").read_text())
    word = "passed" if passed else "not to be relied on"
    assert (summary["total"]["answered"], summary["verdict"]["word"]) == (6, word)
    assert {"broker", "proxy"} <= set(summary["servers"])
    assert told_by(tmp_path / "storm") == (done.returncode, passed, passed)
    assert (tmp_path / "storm/index.html").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("broker", "code", "said"),
    [
        (StandInBroker(NAMES), ExitCode.PASSED, ""),
        (StandInBroker(NAMES, ignore=frozenset(SPACES)), ExitCode.THRESHOLDS, "none got an answer"),
        (
            StandInBroker(NAMES, ignore=frozenset(SPACES[1:])),
            ExitCode.THRESHOLDS,
            "only 1 got an answer",
        ),
        (
            StandInBroker(NAMES, hang_up=frozenset(SPACES)),
            ExitCode.THRESHOLDS,
            "none got an answer",
        ),
        (
            StandInBroker(NAMES, refuse=dict.fromkeys(SPACES, (18, "full"))),
            ExitCode.THRESHOLDS,
            "none got an answer",
        ),
        (StandInBroker(), ExitCode.THRESHOLDS, "names a topic"),
        (StandInBroker(NAMES, lie=frozenset(SPACES[:1])), ExitCode.CORRECTNESS, "1 answer was"),
    ],
    ids=["right", "mute", "one-of-a-hundred", "closes", "refuses", "empty", "lies"],
)
def test_exit_code_junit_and_readme_agree_for_every_outcome_of_a_run(
    broker: StandInBroker,
    code: ExitCode,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # A busy machine exceeds the generator's limits, which have tests of their own.
    monkeypatch.setattr(verdicts, "_LIMITS", ())
    scenario = tmp_path / "outcome.yaml"
    scenario.write_text(SCENARIO % ", ".join(SPACES))
    with running(broker) as url:
        where = ("--service-url", url, "--out", str(tmp_path), "--name", "run", "--tasks", "1")
        found = code_of(monkeypatch, "run", str(scenario), *where)
    last = capsys.readouterr().err.splitlines()[-1]
    assert found == code, last
    assert told_by(tmp_path / "run") == (code, code == 0, code == 0)
    assert said in last
    assert last.startswith("loadgen: ") == bool(said)


def test_an_unreachable_server_is_reported_and_no_run_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"pulsar://127.0.0.1:{closed.getsockname()[1]}"
        where = ("--service-url", url, "--out", str(tmp_path), "--set", "expect=[]")
        code = code_of(monkeypatch, "run", "storm", *where)
    assert code == ExitCode.INTERNAL
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith(f"loadgen: {url} cannot be reached as a Pulsar broker or proxy: ")
    assert not list(tmp_path.iterdir())
