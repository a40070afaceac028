from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from loadgen.__main__ import main
from loadgen.commands.comparing.beside import Sides, run_both, shared_arguments
from loadgen.commands.comparing.repeats import numbered, run_all
from loadgen.errors import ExitCode, LoadgenError, UsageError
from loadgen.run.options import RunOptions
from loadgen.run.run import RunResult
from tests.support.runs.run_directories import STORMS, edit_json, write_run

if TYPE_CHECKING:
    from pathlib import Path


def called(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    monkeypatch.setattr(sys, "argv", ["loadgen", "compare", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


@pytest.fixture
def directories(tmp_path: Path) -> list[Path]:
    """Three repeats of the storm in profile pulsar, then three in profile floodgate."""
    found = []
    for storm in STORMS[1:]:
        for number in range(3):
            directory = tmp_path / f"{storm.name}-{number}"
            found.append(write_run(directory, storm, clients=40, seed=number))
            description = json.loads((found[-1] / "run.json").read_text())
            description["scenario"].pop("name", None)
            edit_json(found[-1] / "run.json", scenario=description["scenario"])
    return found


def test_repeats_of_two_labels_are_compared(directories, tmp_path, monkeypatch, capsys) -> None:
    # When
    page = tmp_path / "pages" / "compared.md"
    code = called(monkeypatch, *directories, "--force", "--markdown", page)
    # Then
    assert code == ExitCode.PASSED
    printed = capsys.readouterr().out
    assert "each side needs" in printed
    assert page.read_text().startswith("| | Limits on, profile pulsar (3 runs) |")


def test_programs_get_json(directories, monkeypatch, capsys) -> None:
    assert called(monkeypatch, *directories, "--force", "--json") == ExitCode.PASSED
    found = json.loads(capsys.readouterr().out)
    assert [len(group["runs"]) for group in found["groups"]] == [3, 3]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["{first}", "{first}"], "is named twice: a run cannot be its own repeat"),
        (["{first}/nothing"], "has no run.json"),
        (["{first}", "--baseline", "x"], "--baseline 'x' is no label of these runs"),
        (["{first}", "--markdown", "/dev/null/x"], "/dev/null/x cannot be written"),
    ],
)
def test_what_cannot_be_compared_is_one_sentence(
    words, sentence: str, directories, monkeypatch, capsys
) -> None:
    given = [word.format(first=directories[0]) for word in words]
    assert called(monkeypatch, *given) == ExitCode.USAGE
    assert sentence in capsys.readouterr().err


GIVEN = ["storm", "--service-url", "pulsar://127.0.0.1:1", "--broker-pid=7", "--clients", "9"]


def test_both_sides_are_asked_alike_and_in_turn(tmp_path: Path) -> None:
    # When
    runs = Sides(GIVEN, "pulsar://127.0.0.1:2", "http://127.0.0.1:3", tmp_path, 2).runs()
    # Then
    assert [name for name, _ in runs] == ["floodgate-1", "pulsar-1", "floodgate-2", "pulsar-2"]
    assert shared_arguments(GIVEN) == ["storm", "--clients", "9"]
    floodgate, pulsar = (given for _, given in runs[:2])
    assert floodgate[: len(GIVEN)] == GIVEN
    assert pulsar[:7] == [
        "storm", "--clients", "9", "--service-url", "pulsar://127.0.0.1:2",
        "--broker-admin-url", "http://127.0.0.1:3",
    ]  # fmt: skip


def ended(monkeypatch: pytest.MonkeyPatch, code: int, said: str) -> list[list[str]]:
    """Let every run end with an exit code and a last word."""
    commands: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        return subprocess.CompletedProcess(command, code, "", said)

    monkeypatch.setattr("loadgen.commands.comparing.beside.subprocess.run", run)
    return commands


def test_a_side_that_misses_a_threshold_has_measured(tmp_path, monkeypatch) -> None:
    commands = ended(monkeypatch, ExitCode.THRESHOLDS, "loadgen: 1 threshold missed")
    found = run_both(Sides(GIVEN, "pulsar://127.0.0.1:2", None, tmp_path, 2))
    assert [path.name for path in found] == ["floodgate-1", "floodgate-2", "pulsar-1", "pulsar-2"]
    assert len(commands) == 4


def test_a_side_that_cannot_be_reached_ends_it_with_its_sentence(tmp_path, monkeypatch) -> None:
    ended(monkeypatch, ExitCode.INTERNAL, "connecting\nloadgen: it cannot be reached\n")
    with pytest.raises(LoadgenError, match=r"^floodgate-1 measured nothing: it cannot be reached"):
        run_both(Sides(GIVEN, "pulsar://127.0.0.1:2", None, tmp_path, 2))


def test_repeats_have_numbers_and_one_label() -> None:
    options = RunOptions("storm", label="Storm")
    assert numbered(options, 1) == [options]
    assert [(each.name, each.label) for each in numbered(options, 2)] == [
        ("storm-1", "Storm"),
        ("storm-2", "Storm"),
    ]
    assert {each.label for each in numbered(RunOptions("plain"), 2)} == {"plain"}
    for unfit in (0, 1_001):
        with pytest.raises(UsageError, match=f"--repeats {unfit}: must be 1 to 1,000"):
            numbered(options, unfit)


@pytest.mark.parametrize(("interrupted", "runs"), [(False, 3), (True, 1)])
def test_repeats_go_on_until_they_are_interrupted(
    tmp_path, capsys, interrupted: bool, runs: int
) -> None:
    # Given
    def run_once(options: RunOptions) -> RunResult:
        directory = write_run(tmp_path / options.name, STORMS[2], clients=20)
        edit_json(directory / "summary.json", interrupted=interrupted, label=options.label)
        return RunResult(directory, json.loads((directory / "summary.json").read_text()))

    # When
    results = run_all(numbered(RunOptions("storm"), 3), run_once, as_json=True)
    # Then
    assert len(results) == runs
    together = json.loads(capsys.readouterr().out)["together"]
    assert [len(group["runs"]) for group in together["groups"]] == [runs]


def test_a_page_says_where_both_sides_agree(tmp_path, monkeypatch, capsys) -> None:
    # Given a model in the place of both sides
    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        name, label = (command[command.index(each) + 1] for each in ("--name", "--label"))
        directory = write_run(tmp_path / name, STORMS[1], clients=40, seed=len(name))
        version = "Pulsar Server4.2.4" if label == "Pulsar" else "Floodgate 0.1.0"
        edit_json(directory / "summary.json", label=label, server_version=version)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr("loadgen.commands.comparing.beside.subprocess.run", run)
    # When
    words = ["--beside", "pulsar://127.0.0.1:2", "--repeats", "2", "--out", tmp_path]
    assert called(monkeypatch, *words, "--", "storm", "--clients", "40") == ExitCode.PASSED
    # Then
    page = (tmp_path / "beside.md").read_text()
    assert page.startswith(
        "# Floodgate beside Pulsar\n\n`loadgen run storm --clients 40`, 2 runs of"
    )
    assert "Floodgate is Floodgate 0.1.0, Pulsar is Pulsar Server4.2.4." in page
    assert "| answered | 40 | 40 | +0.0 % | agree |" in page
    assert page in capsys.readouterr().out
    assert "Floodgate beside Pulsar" in (tmp_path / "beside.html").read_text()
