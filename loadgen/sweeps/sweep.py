"""A sweep: every point of a grid run in virtual time, as one Spark job or in processes."""

from __future__ import annotations

import json
import multiprocessing
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from loadgen.documents.reading import parse_document
from loadgen.errors import ExitCode, LoadgenError
from loadgen.results.verdict import WORDS
from loadgen.sweeps.figures import FIGURES, RunFigures, virtual_figures
from loadgen.sweeps.variation import with_values
from loadgen.units import plural
from loadgen.virtual.silence import servers_silent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from loadgen.documents.document import Document
    from loadgen.sweeps.variation import Value

PARQUET_NAME = "sweep.parquet"


@dataclass(frozen=True)
class Point:
    """One point of a grid: its values, seed included, and what its run came to."""

    values: Mapping[str, Value]
    run: RunFigures

    @property
    def place(self) -> str:
        """The point in words."""
        return ", ".join(f"{path}={value}" for path, value in self.values.items())


def jobs_of(document: Document, points: Sequence[Mapping[str, Value]]) -> list[str]:
    """Return each point as a job: a text that a worker anywhere can run.

    Raises:
        UsageError: A point is no scenario; nothing has been run then.
    """
    return [
        json.dumps(
            {"values": dict(point), "document": with_values(document, point).resolved_text()}
        )
        for point in points
    ]


def run_job(job: str) -> str:
    """Run one point, in a Spark task or a process; the same job has the same answer everywhere."""
    document = parse_document(json.loads(job)["document"])
    with servers_silent():
        found = virtual_figures(document)
    return json.dumps(asdict(found))


def in_spark(
    session: SparkSession, jobs: Sequence[str], on_done: Callable[[int], None]
) -> list[Point]:
    """Run all points as one Spark job.

    Raises:
        LoadgenError: A point could not be run.
    """
    from loadgen.spark.jobs import collect_with_progress

    def rows() -> list[Any]:
        tasks = session.sparkContext.parallelize(jobs, len(jobs))
        answers: list[Any] = tasks.map(run_job).collect()
        return answers

    return _points(jobs, collect_with_progress(session, rows, on_done))


def in_processes(jobs: Sequence[str], workers: int, on_done: Callable[[int], None]) -> list[Point]:
    """Run all points in processes of this machine.

    Raises:
        LoadgenError: A point could not be run.
    """
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(workers, len(jobs)), context) as pool:
        futures = [pool.submit(run_job, job) for job in jobs]
        try:
            for done, future in enumerate(as_completed(futures), 1):
                future.result()
                on_done(done)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
        return _points(jobs, [future.result() for future in futures])


def _points(jobs: Sequence[str], answers: Sequence[str]) -> list[Point]:
    found = []
    for job, answer in zip(jobs, answers, strict=True):
        told = json.loads(answer)
        run = RunFigures(told["figures"], ExitCode(told["exit_code"]), tuple(told["missed"]))
        found.append(Point(json.loads(job)["values"], run))
    return found


def told(point: Point) -> dict[str, Any]:
    """Return a point as JSON has it; figures that nobody has are null."""
    run = point.run
    return {
        "values": dict(point.values),
        "figures": dict(run.figures),
        "passed": run.passed,
        "verdict": WORDS[run.exit_code],
        "missed": list(run.missed),
    }


def require_valid(points: Sequence[Point]) -> None:
    """Refuse a sweep with a run that is not to be relied on; missed thresholds are no such thing.

    Raises:
        LoadgenError: It names the first one; wrong answers count before anything else.
    """
    bad = [each for each in points if not each.run.valid]
    if bad:
        first = min(bad, key=lambda each: each.run.exit_code)
        raise LoadgenError(
            f"{len(bad)} of {plural(len(points), 'run')} are not to be relied on, the first of "
            f"them at {first.place}: {first.run.missed[0]}",
            first.run.exit_code,
        )


def write_points(points: Sequence[Point], out: Path) -> Path:
    """Write a row for each point: its values, its figures, and its verdict.

    Raises:
        LoadgenError: It cannot be written.
    """
    columns: dict[str, pa.Array] = {
        path: _column([point.values[path] for point in points]) for path in points[0].values
    }
    for name in FIGURES:
        values = [point.run.figures[name] for point in points]
        if any(value is not None for value in values):
            columns[name] = pa.array(values, pa.float64())
    columns["passed"] = pa.array([point.run.passed for point in points])
    columns["verdict"] = pa.array([WORDS[point.run.exit_code] for point in points])
    path = out / PARQUET_NAME
    try:
        out.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(columns), path)
    except OSError as error:
        raise LoadgenError(
            f"--out {out} cannot be written ({error.strerror}); choose another directory"
        ) from error
    return path


def _column(values: Sequence[Value]) -> pa.Array:
    """Return a column of one type: numbers where all are, else texts."""
    if all(isinstance(value, bool) for value in values):
        return pa.array(values, pa.bool_())
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        return pa.array(values, pa.int64())
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return pa.array([float(value) for value in values], pa.float64())
    return pa.array([str(value) for value in values], pa.string())
