"""The examples run from the command line to tables, JSON and picture."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from examples import hold_and_wait, slow_readers
from examples.figures import TERMINAL_COLUMNS

SMALL = ["--requests", "3000", "--load", "0.9", "--seeds", "2"]


def test_hold_and_wait_reports_fifo_as_in_the_model_and_fair_as_complete() -> None:
    done = CliRunner().invoke(hold_and_wait.app, ["--seeds", "1"])
    assert done.exit_code == 0, done.output
    words = " ".join(done.stdout.split())
    assert "fifo: the three cases end as the minimal model" in words
    assert "fifo: 2 of 8 runs complete every request" in words
    assert "fair: 8 of 8 runs complete every request" in words
    assert "Order: as the model expects" in words


def test_hold_and_wait_prints_every_run_as_json() -> None:
    done = CliRunner().invoke(hold_and_wait.app, ["--policy", "fifo", "--seeds", "2", "--json"])
    runs = json.loads(done.stdout)["runs"]
    assert len(runs) == 4 * 3
    assert {run["policy"] for run in runs} == {"fifo"}
    stalled = [run for run in runs if run["case"]["actual"] == 25 and run["seed"] == 0]
    assert [(run["completed"], run["timed_out"]) for run in stalled] == [(4, 16)]


def test_slow_readers_prints_workload_runs_and_verdict_as_json() -> None:
    done = CliRunner().invoke(slow_readers.app, [*SMALL, "--json"])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["workload"]["offered_load"] == 0.9
    assert document["workload"]["requests_per_second"] == pytest.approx(249.9, abs=0.1)
    assert [(run["seed"], run["policy"]) for run in document["runs"]] == [
        (1, "fifo"),
        (1, "fair"),
        (2, "fifo"),
        (2, "fair"),
    ]
    assert all(run["groups"]["all"]["requests"] == 3000 for run in document["runs"])
    assert document["verdict"][0].startswith("Order: ")


@pytest.mark.parametrize("app", [hold_and_wait.app, slow_readers.app])
def test_printed_tables_fit_a_hundred_columns(app: object) -> None:
    arguments = SMALL if app is slow_readers.app else ["--seeds", "3"]
    done = CliRunner().invoke(app, arguments)  # type: ignore[arg-type]
    assert done.exit_code == 0, done.output
    assert max(len(line.rstrip()) for line in done.stdout.splitlines()) <= TERMINAL_COLUMNS
    assert "…" not in done.stdout


@pytest.mark.parametrize("readers", ["own", "connections", "mixed"])
def test_the_printed_assumptions_describe_the_slow_readers(readers: str) -> None:
    words = {
        "own": "Each request is of a connection of its own; 5 % of them are slow readers.",
        "connections": "1,000 connections ask; 5 % of them are slow readers.",
        "mixed": "1,000 connections ask; each reads 5 % of its replies slowly.",
    }[readers]
    arguments = ["--readers", readers, "--requests", "100", "--seeds", "1", "--policy", "fifo"]
    done = CliRunner().invoke(slow_readers.app, arguments)
    assert done.exit_code == 0, done.output
    assert words in " ".join(done.stdout.split())
    assert "Order" not in done.stdout


def test_the_picture_is_a_small_svg(tmp_path: Path) -> None:
    path = tmp_path / "new" / "waits.svg"
    done = CliRunner().invoke(slow_readers.app, [*SMALL, "--picture", str(path)])
    assert done.exit_code == 0, done.output
    assert path.read_text().startswith("<svg ")
    assert path.stat().st_size < 150_000


def test_an_unknown_policy_is_refused() -> None:
    done = CliRunner().invoke(hold_and_wait.app, ["--policy", "lifo"])
    assert done.exit_code == 2
