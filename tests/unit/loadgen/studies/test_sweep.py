"""A sweep runs every combination once, keeps existing runs, and reports each outcome."""

import math
import os
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from loadgen.documents.model import Document
from loadgen.errors import ExitCode, LoadgenError, UsageError
from loadgen.studies.sweep import (
    PARQUET_NAME,
    SweepOptions,
    Varied,
    lines_of,
    parse_varied,
    require_valid,
    sweep,
    table_of,
)
from tests.support.runs.recorded_run import request
from tests.unit.loadgen.studies.fake_experiment import FakeExperiment

TEXT = """
clients: [{name: steady, do: list, count: 2}]
expect: [list.answered == 100%]
"""


@pytest.fixture
def options(tmp_path: Path) -> SweepOptions:
    file = tmp_path / "mine.yaml"
    file.write_text(TEXT)
    varied = [
        Varied("clients.steady.count", (1, 2)),
        parse_varied("servers.profile=pulsar,floodgate"),
    ]
    return SweepOptions(str(file), varied=varied, repeats=2, out=tmp_path / "out")


@pytest.fixture
def few(options: SweepOptions) -> SweepOptions:
    """Return a sweep of two runs."""
    return replace(options, varied=options.varied[:1], repeats=1)


def refused_by_pulsar(document: Document) -> list[dict[str, Any]]:
    bad = "refused" if document.servers.profile == "pulsar" else "answered"
    return [request(client=n, outcome=bad) for n in range(document.clients[0].count)]


def test_every_combination_runs_with_every_seed(options: SweepOptions) -> None:
    run = FakeExperiment(refused_by_pulsar)
    points = sweep(options, run=run)
    ran = [(d.clients[0].count, d.servers.profile, d.seed) for d, _ in run.run]
    assert ran == [(n, p, seed) for n in (1, 2) for p in ("pulsar", "floodgate") for seed in (1, 2)]
    assert {how.place for _, how in run.run} == {"virtual"}
    assert [point.passed for point in points] == 2 * [False, False, True, True]
    assert points[0].missed[0] == "list.answered == 100%: 0 %"
    table = pq.read_table(options.out / PARQUET_NAME)
    assert table["clients.steady.count"].to_pylist() == [1] * 4 + [2] * 4
    assert table["requests.refused.rate"].to_pylist()[:4] == [1.0, 1.0, 0.0, 0.0]
    assert [options.out / name for name in table["run"].to_pylist()] == [p.run for p in points]


def test_a_restarted_sweep_runs_only_missing_points(few: SweepOptions) -> None:
    first = sweep(few, run=FakeExperiment())
    run = FakeExperiment()
    points = sweep(replace(few, repeats=2), run=run)
    assert {document.seed for document, _ in run.run} == {2}
    assert [point.run for point in points[::2]] == [point.run for point in first]


@pytest.mark.parametrize(
    "change", [{"settings": ["phases.measure=7s"]}, {"place": "processes"}], ids=str
)
def test_runs_of_other_settings_or_of_another_place_are_repeated(
    few: SweepOptions, change: dict[str, Any]
) -> None:
    sweep(few, run=FakeExperiment())
    run = FakeExperiment()
    sweep(replace(few, **change), run=run)
    assert len(run.run) == 2


@pytest.mark.parametrize(("changed", "runs"), [("2026-01-01", 0), ("2026-01-03", 2)])
def test_runs_with_a_policy_of_a_module_that_has_been_changed_since_are_repeated(
    few: SweepOptions, tmp_path: Path, monkeypatch, changed: str, runs: int
) -> None:
    module = tmp_path / f"by_size_{runs}.py"
    module.write_text("from limiter import FairAdmission\n\n\nclass BySize(FairAdmission): ...\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    policy = f"servers.broker.floodgateAdmissionPolicy=by_size_{runs}:BySize"
    own = replace(few, settings=[policy])
    sweep(own, run=FakeExperiment(started_at="2026-01-02T00:00:00+00:00"))
    moment = datetime.fromisoformat(f"{changed}T00:00:00+00:00").timestamp()
    os.utime(module, (moment, moment))
    run = FakeExperiment()
    sweep(own, run=run)
    assert len(run.run) == runs


def test_an_interrupted_run_is_no_point_and_is_repeated(few: SweepOptions) -> None:
    with pytest.raises(KeyboardInterrupt):
        sweep(few, run=FakeExperiment(interrupted=True))
    run = FakeExperiment()
    sweep(few, run=run)
    assert len(run.run) == 2


def test_no_point_runs_if_the_scenario_of_a_point_is_invalid(options: SweepOptions) -> None:
    run = FakeExperiment()
    wrong = replace(options, varied=[Varied("clients.steady.count", (1, "many"))])
    with pytest.raises(UsageError, match=r"clients\.steady\.count"):
        sweep(wrong, run=run)
    assert not run.run


def test_the_table_of_a_sweep_has_medians_and_the_number_of_passed_runs(
    options: SweepOptions,
) -> None:
    points = sweep(options, run=FakeExperiment(refused_by_pulsar))
    heads, rows = table_of(points)
    assert heads[:3] == ["clients.steady.count", "servers.profile", "back"]
    assert rows[0][:2] == ["1", "pulsar"]
    assert (rows[0][4], rows[0][5], rows[0][-1]) == ("100 %", "never", "0 of 2")
    assert (rows[3][5], rows[3][6], rows[3][-1]) == ("100 ms", "-", "2 of 2")
    assert lines_of(points, "list.response.p99") is not None
    along, lines = lines_of(points, "requests.refused.rate") or ("", {})
    assert along == "clients.steady.count"
    assert lines["servers.profile=pulsar"] == [(1.0, [1.0, 1.0]), (2.0, [1.0, 1.0])]
    assert points[0].figures["list.response.p99"] == math.inf


def test_unreliable_runs_are_reported_and_fail_the_sweep(few: SweepOptions) -> None:
    wrong = FakeExperiment(lambda document: [request(outcome="wrong")])
    points = sweep(replace(few, repeats=2), run=wrong)
    with pytest.raises(LoadgenError, match="4 of 4 runs are not to be relied on") as caught:
        require_valid(points)
    assert caught.value.exit_code is ExitCode.CORRECTNESS
    assert table_of(points)[0][-1] == "not to be relied on"
    assert table_of(points)[1][0][-1] == "wrong answers: 2"


@pytest.mark.parametrize(
    ("varied", "repeats", "said"),
    [
        ([], 1, "no setting to vary"),
        ([Varied("seed", (1, 2))], 1, "use --repeats N"),
        ([Varied("a", (1,)), Varied("a", (2,))], 1, "is there twice"),
        ([Varied("a", (1, 1))], 1, "has a value twice"),
        ([Varied("a", (1,))], 0, "0 points"),
        ([Varied("a", tuple(range(101)))], 100, "10,100 points"),
    ],
)
def test_an_empty_repeated_or_too_large_grid_is_refused(options, varied, repeats, said) -> None:
    with pytest.raises(UsageError, match=said):
        sweep(replace(options, varied=varied, repeats=repeats), run=FakeExperiment())
