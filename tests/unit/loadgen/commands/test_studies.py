"""``loadgen sweep``, ``find-limit`` and ``compare`` print one object, with the settings."""

import json
from pathlib import Path
from typing import Any

import pytest

from loadgen.errors import ExitCode
from proto.version import VERSION
from tests.support.runs.recorded_run import record_run, request

TEXT = """
clients: [{name: steady, do: list, count: 2}]
topics: {namespaces: 1, per_namespace: 10}
phases: {measure: 1s, drain: 1s}
expect: [list.answered == 100%]
"""


@pytest.fixture(autouse=True)
def _mine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Puts the scenario mine.yaml into the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text(TEXT)


def told_by(loadgen, *words: str) -> tuple[int, dict[str, Any]]:
    code, out, _ = loadgen(*words, "--json")
    told = json.loads(out)
    command = f"loadgen {' '.join(words)} --json"
    assert told.pop("produced_by") == {"loadgen": VERSION, "command_line": command}
    return code, told


def test_a_sweep_prints_its_points_as_json_and_as_a_table(loadgen) -> None:
    words = ("sweep", "mine.yaml", "--vary", "clients.steady.count=1,2")
    code, told = told_by(loadgen, *words, "--workers", "1")
    assert (code, told["schema_version"], told["scenario"]) == (0, 1, "mine.yaml")
    assert [each["values"]["clients.steady.count"] for each in told["points"]] == [1, 2]
    # and the same for people
    table, *written = loadgen(*words)[1].splitlines()
    assert table.split()[:2] == ["clients.steady.count", "back"]
    assert [line.rpartition("/")[2] for line in written[-2:]] == ["sweep.parquet", "sweep.svg"]


def test_find_limit_prints_its_probes_as_json(loadgen) -> None:
    words = ("find-limit", "mine.yaml", "--vary", "clients.steady.count=1..2")
    code, told = told_by(loadgen, *words)
    assert (code, told["schema_version"], told["kind"]) == (ExitCode.THRESHOLDS, 1, "all")
    assert told["probes"] == [[1, True], [2, True]]


def test_a_comparison_prints_its_figures_as_json_and_as_text(loadgen, tmp_path: Path) -> None:
    for name in ("a", "b"):
        record_run(tmp_path / name, [request()], title=name)
    code, told = told_by(loadgen, "compare", "a", "b")
    assert (code, told["schema_version"]) == (0, 3)
    assert told["groups"] == {"a": ["a"], "b": ["b"]}
    sides = {each["figure"]: each["sides"] for each in told["figures"]}
    assert sides["answered"] == [{"values": [1], "label": "a"}, {"values": [1], "label": "b"}]
    # and the same for people
    out = loadgen("compare", "a", "b", "--markdown", "x.md")[1]
    assert "Whether they agree needs 5 repeats of each." in out
    assert "steady.list response p50  100 ms  100 ms" in out
    assert (tmp_path / "x.md").read_text().startswith("# a beside b")


@pytest.mark.parametrize(
    "words",
    [
        ("sweep", "mine.yaml", "--vary", "seed=1,2", "--repeats", "0"),
        ("sweep", "mine.yaml", "--vary", "seed=1,2", "--workers", "0"),
        ("compare", "mine.yaml", "--profiles", "--repeats", "0"),
        ("topics", "--namespaces", "0"),
        ("demo", "--clients", "0"),
        ("picture", "a", "--columns", "0"),
        ("load", "a", "--concurrency", "0"),
    ],
)
def test_a_count_of_zero_is_refused_in_a_single_line(loadgen, words: tuple[str, ...]) -> None:
    assert loadgen(*words) == (ExitCode.USAGE, "", f"loadgen: {words[-2]} 0: must be at least 1\n")
