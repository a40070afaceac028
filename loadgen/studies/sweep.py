"""``loadgen sweep``: runs a scenario with every combination of values of some settings.

Points in virtual time run in parallel, in processes or as a Spark job. Points with real servers run
one after the other.
"""

from __future__ import annotations

import math
import multiprocessing
import statistics
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from loadgen.documents.tree import parse_values
from loadgen.errors import LoadgenError, UsageError, writing
from loadgen.places.experiment import experiment
from loadgen.studies.find_limit import parse_range
from loadgen.studies.points import (
    FIGURES,
    SEED,
    SHOWN,
    Job,
    Point,
    Study,
    Value,
    figure_text,
    in_short,
    run_job,
)
from loadgen.topics.executors import in_spark
from loadgen.units import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from loadgen.studies.points import Experiment

    Combination = tuple[tuple[str, str], ...]

PARQUET_NAME = "sweep.parquet"
MOST_POINTS = 10_000


class Varied(NamedTuple):
    """The path of a setting, and the values of it to try."""

    path: str
    values: tuple[Value, ...]


def parse_varied(text: str) -> Varied:
    """Parse a path and values, as in ``servers.profile=pulsar,floodgate`` or ``a.b=10..100/5``.

    Raises:
        UsageError: The text does not have this form.
    """
    path, _, values = text.partition("=")
    if ".." in values:
        between, _, count = text.rpartition("/")
        if not count.isdecimal() or not 2 <= int(count) <= MOST_POINTS:
            raise UsageError(
                f"--vary {text[:80]!r} does not say how many values: write PATH=LOW..HIGH/COUNT, "
                "for example clients.all.count=10..1000/5"
            )
        found = parse_range(between)
        return Varied(found.path, tuple(found.spread(int(count))))
    row = parse_values(f"[{values}]", "--vary").plain()
    if not path.strip() or not isinstance(row, list) or not row:
        raise UsageError(
            f"--vary {text[:80]!r} is not of the form PATH=VALUE,VALUE: for example "
            "servers.broker.maxTopicListInFlightHeapMemSizeMB=10,20,50"
        )
    return Varied(path.strip(), tuple(row))


def parse_grid(text: str, file: Path) -> list[Varied]:
    """Parse a YAML file with a list of values for each path, as in ``PATH: [10, 20, 50]``.

    Raises:
        UsageError: The file does not have this form.
    """
    found = parse_values(text, str(file)).plain()
    rows = found.values() if isinstance(found, dict) else [None]
    if not all(isinstance(each, list) and each for each in rows):
        raise UsageError(f"--grid {file} is not a list of values for each path: PATH: [10, 20, 50]")
    return [Varied(path.strip(), tuple(values)) for path, values in found.items()]


@dataclass(frozen=True)
class SweepOptions(Study):
    """The options of ``loadgen sweep``.

    Attributes:
        varied: The settings with their values; every combination of values is run.
        repeats: Number of runs of each combination, with the seeds 1, 2, ...
        workers: Number of points that run in parallel, in virtual time.
    """

    varied: Sequence[Varied] = ()
    repeats: int = 1
    workers: int = 1

    @property
    def points(self) -> int:
        """The number of runs of the sweep, including repeats."""
        return math.prod(len(each.values) for each in self.varied) * self.repeats


def jobs_of(options: SweepOptions) -> list[Job]:
    """Return a job for every run of a sweep.

    Raises:
        UsageError: A combination of values is not a valid scenario, or the grid is invalid.
    """
    for mistake in _mistakes(options):
        raise UsageError(mistake)
    paths = [*(each.path for each in options.varied), SEED]
    seeds = range(1, options.repeats + 1)
    combined = product(*(each.values for each in options.varied), seeds)
    return [options.job(dict(zip(paths, values, strict=True))) for values in combined]


def _mistakes(options: SweepOptions) -> Iterator[str]:
    paths = [each.path for each in options.varied]
    if not paths:
        yield "no setting to vary: give --vary PATH=VALUE,VALUE, or --grid FILE"
    if SEED in paths:
        yield "--vary seed: use --repeats N, which runs each point with seeds 1 to N"
    for path, values in options.varied:
        if paths.count(path) > 1:
            yield f"--vary {path} is there twice: give all its values at once"
        if len({in_short(value) for value in values}) < len(values):
            yield f"--vary {path} has a value twice: use --repeats N for more runs of it"
    if not 1 <= options.points <= MOST_POINTS:
        yield f"the grid has {options.points:,} points: 1 to {MOST_POINTS:,} can be run"


def sweep(
    options: SweepOptions,
    on_done: Callable[[int], None] = lambda done: None,
    run: Experiment = experiment,
    session: SparkSession | None = None,
) -> list[Point]:
    """Run every point of a sweep that has no finished run, and write ``sweep.parquet``.

    Args:
        options: The settings and values of the sweep.
        on_done: Called with the number of finished points.
        run: Runs a scenario document.
        session: A Spark session that runs all points as one job, in virtual time.

    Raises:
        UsageError: A combination of values is invalid, as in :func:`jobs_of`; no point was run.
        LoadgenError: A point could not be run.
    """
    jobs, points = jobs_of(options), list[Point]()
    workers = min(options.workers, len(jobs)) if options.place == "virtual" else 1
    if session is not None and options.place == "virtual":
        points += in_spark(session, on_done)(lambda part: [run_job(jobs[part])], len(jobs))
    else:
        with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
            # A failed point cancels the points that have not begun.
            made = pool.map(run_job, jobs) if workers > 1 else (run_job(job, run) for job in jobs)
            for point in made:
                points.append(point)
                on_done(len(points))
    write_points(points, options.out)
    return points


def require_valid(points: Sequence[Point]) -> None:
    """Raise an error if a run of a sweep is unreliable; missed expectations are allowed.

    Raises:
        LoadgenError: A run is unreliable; sentence and exit code are those of the worst run.
    """
    bad = [each for each in points if not each.valid]
    if bad:
        worst = max(bad, key=lambda each: each.level.rank)
        raise LoadgenError(
            f"{len(bad)} of {plural(len(points), 'run')} are not to be relied on, the first of "
            f"them at {worst.place}: {worst.missed[0]}",
            worst.level.exit_code,
        )


def write_points(points: Sequence[Point], out: Path) -> None:
    """Write ``sweep.parquet``, with a row for each run: its values, figures and verdict.

    Raises:
        LoadgenError: The file cannot be written.
    """
    columns = {path: _column([point.values[path] for point in points]) for path in points[0].values}
    for name in FIGURES:
        values = [point.figures[name] for point in points]
        if any(value is not None for value in values):
            columns[name] = pa.array(values, pa.float64())
    columns["passed"] = pa.array([point.passed for point in points])
    columns["verdict"] = pa.array([point.verdict for point in points])
    columns["run"] = pa.array([point.run.name for point in points])
    with writing(out):
        pq.write_table(pa.table(columns), out / PARQUET_NAME)


def _column(values: Sequence[Value]) -> pa.Array:
    """Return values as an Arrow column: as numbers if all are numbers, otherwise as texts."""
    kinds = {type(value) for value in values}
    plain = kinds <= {int, float} or kinds == {bool}
    return pa.array(values if plain else [in_short(value) for value in values])


# -- the outcomes ---------------------------------------------------------------------------------


def combinations(points: Sequence[Point]) -> dict[Combination, list[Point]]:
    """Group points by their combination of values; the points of a group differ by seed only."""
    found: dict[Combination, list[Point]] = {}
    for point in points:
        values = {path: in_short(each) for path, each in point.values.items() if path != SEED}
        found.setdefault(tuple(values.items()), []).append(point)
    return found


def table_of(points: Sequence[Point]) -> tuple[list[str], list[list[str]]]:
    """Return the heads and rows of a table, with medians for each combination of values."""
    groups = combinations(points)
    doubtful = any(not point.valid for point in points)
    heads = [path for path, _ in next(iter(groups))]
    heads += [*SHOWN.values(), "passed", *(["not to be relied on"] * doubtful)]
    rows = []
    for values, same in groups.items():
        seen = {name: measurements(same, name) for name in SHOWN}
        told = [figure_text(n, statistics.median(v) if v else None) for n, v in seen.items()]
        doubts = Counter(point.verdict for point in same if not point.valid)
        said = "; ".join(f"{word}: {count}" for word, count in doubts.items())
        passed = f"{sum(point.passed for point in same)} of {len(same)}"
        rows.append([*(value for _, value in values), *told, passed, *([said] * doubtful)])
    return heads, rows


def measurements(points: Sequence[Point], name: str) -> list[float]:
    """Return the values of a figure at all points that measured it."""
    return [value for point in points if (value := point.figures[name]) is not None]


def lines_of(
    points: Sequence[Point], figure: str = "clients.back.p99"
) -> tuple[str, dict[str, list[tuple[float, list[float]]]]] | None:
    """Return the lines of a sweep's chart; None if no setting has several numbers.

    Returns:
        The path of the first setting with several numbers. Then, for each combination of
        the other settings, a line: these numbers in order, each with the figures over the seeds.
    """
    for along in (path for path in points[0].values if path != SEED):
        numbers = [point.values[along] for point in points]
        if not {type(each) for each in numbers} <= {int, float} or len(set(numbers)) < 2:
            continue
        lines: dict[str, list[tuple[float, list[float]]]] = {}
        for values, same in combinations(points).items():
            rest = ", ".join(f"{path}={value}" for path, value in values if path != along)
            if seen := measurements(same, figure):
                lines.setdefault(rest, []).append((float(same[0].values[along]), seen))
        return along, {name: sorted(line) for name, line in lines.items()}
    return None
