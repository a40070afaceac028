"""A sweep has a row for each run, the same ones every time, and medians over seeds."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from loadgen.documents.reading import parse_document
from loadgen.errors import ExitCode, LoadgenError
from loadgen.sweeps.figures import FIGURES, RunFigures, virtual_figures
from loadgen.sweeps.picture import combinations, in_words, table_of
from loadgen.sweeps.sweep import Point, jobs_of, require_valid, run_job, write_points
from loadgen.sweeps.variation import Varied, grid

if TYPE_CHECKING:
    from pathlib import Path

DOCUMENT = parse_document("""
name: small
kind: discovery
cluster:
  profile: pulsar
  broker: {maxTopicListInFlightDirectMemSizeMB: 1, floodgateSocketSendBufferBytes: 4096}
  topics: {namespaces: 2, per_namespace: 200}
load:
  groups:
    - name: all
      clients: 6
      arrivals: {kind: poisson, per_second: 20}
      reader: {rate_bytes_per_second: 100000, receive_buffer_bytes: 4096}
thresholds:
  - clients.back.max < 60s
""")


def test_the_same_point_has_the_same_figures_every_time() -> None:
    # Given
    first, second = jobs_of(DOCUMENT, list(grid([Varied("clients", (6,))], [1, 2])))
    # Then
    assert run_job(first) == run_job(first)
    assert run_job(first) != run_job(second)


def test_a_point_leaves_the_log_of_its_process_as_it_was() -> None:
    # When
    run_job(jobs_of(DOCUMENT, [{"clients": 1}])[0])
    # Then
    assert logging.root.manager.disable == logging.NOTSET


def point(size: int, seed: int, seconds: float, code: ExitCode | None = None) -> Point:
    figures = dict.fromkeys(FIGURES) | {"clients.back.p99": seconds}
    if code is None:
        code = ExitCode.PASSED if seconds < 5 else ExitCode.THRESHOLDS
    run = RunFigures(figures, code, () if code is ExitCode.PASSED else (f"{code.name} it was.",))
    return Point({"broker.size": size, "seed": seed}, run)


POINTS = [point(10, 1, 7.0), point(10, 2, 3.0), point(10, 3, 4.0), point(20, 1, 1.0)]


def test_a_row_has_the_values_the_figures_and_the_verdict(tmp_path: Path) -> None:
    # When
    rows = pq.read_table(write_points(POINTS, tmp_path)).to_pylist()
    # Then
    assert rows[0] == {
        "broker.size": 10,
        "seed": 1,
        "clients.back.p99": 7.0,
        "passed": False,
        "verdict": "thresholds failed",
    }
    assert len(rows) == 4


def test_two_keys_and_all_figures_are_whole_on_a_terminal_of_80_columns(
    capsys: pytest.CaptureFixture[str],
) -> None:
    # Given
    values = {f"{role}.maxTopicListInFlightDirectMemSizeMB": 100 for role in ("broker", "proxy")}
    figures: dict[str, float | None] = dict.fromkeys(FIGURES, 12_345_678.0)
    figures |= {name: 1.0 for name in FIGURES if name.endswith("rate")}
    figures |= {name: 123.456 for name in FIGURES if name.startswith(("list", "clients.back.p"))}
    # When
    points = [Point({**values, "profile": "floodgate"}, RunFigures(figures))]
    Console(width=80).print(table_of(points))
    # Then
    *heads, row = capsys.readouterr().out.splitlines()
    assert "profile" in heads[-1]
    assert row.split()[:3] == ["100", "100", "floodgate"]
    assert row.rstrip().endswith("1 of 1")
    assert "…" not in "".join((*heads, row))


def test_a_combination_is_told_by_the_median_of_its_seeds() -> None:
    # When
    table = table_of(POINTS)
    # Then
    assert [len(same) for same in combinations(POINTS).values()] == [3, 1]
    cells = {column.header: list(column.cells) for column in table.columns}
    assert cells["back\np99"] == ["4.00 s", "1.00 s"]
    assert cells["passed"] == ["2 of 3", "1 of 1"]


def test_runs_that_are_not_to_be_relied_on_are_told_by_name() -> None:
    # Given
    late = point(10, 4, 1.0, ExitCode.GENERATOR_LIMITED)
    wrong = point(20, 2, 1.0, ExitCode.CORRECTNESS)
    # When
    passed, doubts = (
        list(column.cells) for column in table_of([*POINTS, late, wrong]).columns[-2:]
    )
    # Then
    assert passed == ["2 of 4", "1 of 2"]
    assert doubts == ["the generator was the limit: 1", "wrong answers: 1"]
    require_valid(POINTS)
    with pytest.raises(
        LoadgenError, match=r"2 of 6 runs .* at broker\.size=20, seed=2: CORR"
    ) as ended:
        require_valid([*POINTS, late, wrong])
    assert ended.value.exit_code is ExitCode.CORRECTNESS


def test_a_wrong_answer_counts_before_thresholds() -> None:
    # Given lists that have other names than is known of them
    known = [each.model_copy(update={"topics": 199}) for each in DOCUMENT.scenario.namespaces]
    changed = DOCUMENT.scenario.model_copy(update={"namespaces": tuple(known)})
    # When
    found = virtual_figures(DOCUMENT.with_scenario(changed))
    # Then
    assert found.exit_code is ExitCode.CORRECTNESS
    assert found.missed == ("6 answers were wrong.",)
    assert not found.valid


def test_figures_are_written_in_their_units() -> None:
    assert in_words("clients.back.rate", 0.995) == "99.5 %"
    assert in_words("broker.heap.used.max", 2 * 1024 * 1024) == "2.0 MB"
    assert in_words("broker.heap.waiting.max", 1200) == "1,200"
    assert in_words("list.response.p99", None) == "-"
