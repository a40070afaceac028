"""Sweeps and bisections refuse what they cannot do before anything runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from loadgen.commands import sweep as command
from loadgen.errors import ExitCode, LoadgenError, UsageError
from loadgen.executors.processes import ExecutorKind
from loadgen.sweeps.figures import FIGURES, RunFigures
from loadgen.sweeps.sweep import Point

if TYPE_CHECKING:
    from pathlib import Path

    from loadgen.documents.document import Document

KEY = "maxTopicListInFlightHeapMemSizeMB"
NO_FIGURES = dict.fromkeys(FIGURES)


def scenario(folder: Path, thresholds: str = "[clients.back.max < 5s]") -> str:
    path = folder / "mine.yaml"
    path.write_text(
        "kind: discovery\n"
        "load: {groups: [{name: all, clients: 3}]}\n"
        f"cluster: {{broker: {{{KEY}: 50}}}}\nthresholds: {thresholds}\n"
    )
    return str(path)


def test_a_sweep_needs_something_to_vary(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no setting to vary"):
        command.sweep(scenario(tmp_path))


@pytest.mark.parametrize("text", ["[1]", "broker.k: 5", "broker.k: []", "k: [[1]]", ": ["])
def test_a_grid_that_is_none_is_refused(text: str, tmp_path: Path) -> None:
    # Given
    grid = tmp_path / "grid.yaml"
    grid.write_text(text)
    # Then
    with pytest.raises(
        UsageError, match=r"grid\.yaml(, line 1: this is not YAML| is not a list of values)"
    ):
        command.sweep(scenario(tmp_path), grid_file=grid)


def test_a_limit_of_nothing_is_not_looked_for(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no thresholds, so no value can fail"):
        command.find_limit(scenario(tmp_path, "[]"), vary="clients=1..9")


def passing_from(least: int) -> object:
    def figures(document: Document) -> RunFigures:
        value = int(document.cluster.broker[KEY])
        if value >= least:
            return RunFigures(NO_FIGURES)
        missed = ("clients.back.max < 5s: 9.0 s",)
        return RunFigures(NO_FIGURES, ExitCode.THRESHOLDS, missed)

    return figures


def test_the_answer_comes_with_its_bracket_and_every_probe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given
    monkeypatch.setattr(command, "virtual_figures", passing_from(17))
    wanted = f"broker.{KEY}=1..100"
    # When
    command.find_limit(scenario(tmp_path), vary=wanted, as_json=True)
    told = capsys.readouterr()
    command.find_limit(scenario(tmp_path), vary=wanted)
    shown = capsys.readouterr()
    # Then
    answer = json.loads(told.out)
    assert (answer["kind"], answer["passes"], answer["fails"]) == ("smallest", 17, 16)
    assert not told.err
    assert shown.out == f"broker.{KEY}: The smallest value that passes is 17; 16 does not.\n"
    assert len(shown.err.splitlines()) == len(answer["probes"])
    assert f"broker.{KEY}=1: thresholds failed; clients.back.max < 5s: 9.0 s" in shown.err


def test_ends_that_both_pass_are_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given
    monkeypatch.setattr(command, "virtual_figures", passing_from(1))
    # Then
    with pytest.raises(LoadgenError, match=f"^broker.{KEY}: Both ends pass") as ended:
        command.find_limit(scenario(tmp_path), vary=f"broker.{KEY}=1..100")
    assert ended.value.exit_code is ExitCode.THRESHOLDS
    assert not capsys.readouterr().out, "the error says it"


def test_a_sweep_in_json_has_every_run_with_its_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given
    missed = RunFigures({**NO_FIGURES, "clients.back.rate": 0.5}, ExitCode.THRESHOLDS, ("Late.",))
    done = [Point({KEY: 1, "seed": 1}, missed), Point({KEY: 2, "seed": 1}, RunFigures(NO_FIGURES))]
    monkeypatch.setattr(command, "in_processes", lambda *_: done)
    # When
    command.sweep(
        scenario(tmp_path),
        vary=[f"broker.{KEY}=1,2"],
        executor=ExecutorKind.PROCESS,
        out=tmp_path,
        as_json=True,
    )
    # Then
    told = capsys.readouterr()
    late, passed = json.loads(told.out)
    assert (late["values"], late["missed"]) == ({KEY: 1, "seed": 1}, ["Late."])
    assert (late["verdict"], late["passed"]) == ("thresholds failed", False)
    assert (late["figures"]["clients.back.rate"], late["figures"]["clients.back.p99"]) == (
        0.5,
        None,
    )
    assert passed["passed"]
    assert not told.err


@pytest.mark.parametrize(
    ("threshold", "sentence"),
    [
        ("proxy.direct.used.max <= limit", "needs the figures of a proxy"),
        ("broker.resident.max < 1GiB", "is of a process, which virtual time has none of"),
    ],
)
def test_a_threshold_that_nobody_would_measure_is_refused_before_anything_runs(
    threshold: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given
    monkeypatch.setattr(command, "in_processes", None)
    monkeypatch.setattr(command, "virtual_figures", None)
    document = scenario(tmp_path, f"[{threshold}]")
    # Then
    with pytest.raises(UsageError, match=f"threshold '{threshold}' {sentence}"):
        command.sweep(document, vary=["clients=5,6"], executor=ExecutorKind.PROCESS)
    with pytest.raises(UsageError, match=f"threshold '{threshold}' {sentence}"):
        command.find_limit(document, vary="clients=5..6")


@pytest.mark.parametrize("code", [ExitCode.CORRECTNESS, ExitCode.GENERATOR_LIMITED])
def test_a_probe_that_tells_nothing_of_thresholds_ends_the_search(
    code: ExitCode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given
    found = RunFigures(NO_FIGURES, code, ("It was so.",))
    monkeypatch.setattr(command, "virtual_figures", lambda _: found)
    # Then
    with pytest.raises(LoadgenError, match=f"no limit .*: at broker.{KEY}=1 It was so") as ended:
        command.find_limit(scenario(tmp_path), vary=f"broker.{KEY}=1..100")
    assert ended.value.exit_code is code


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("watch-churn", "watch-churn does not run in virtual time"),
        ("proxy-cascade", "no server is restarted in virtual time: leave out cluster.events"),
    ],
)
def test_what_does_not_run_in_virtual_time_is_refused_before_anything_runs(
    name: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given
    monkeypatch.setattr(command, "in_processes", None)
    monkeypatch.setattr(command, "virtual_figures", None)
    # Then
    remedy = f"{sentence}.* --executor process of `loadgen run` or `loadgen find-limit`"
    with pytest.raises(UsageError, match=remedy):
        command.sweep(name, vary=["clients=5,6"], executor=ExecutorKind.PROCESS)
    with pytest.raises(UsageError, match=remedy):
        command.find_limit(name, vary="clients=5..6")
