"""The speed of ``loadgen topics`` and of a run's queries, compared with plain code."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.result import BenchOptions, BenchResult, Figure
from loadgen.documents.reading import parse_document
from loadgen.places.experiment import experiment
from loadgen.places.options import RunOptions
from loadgen.results.results import QUERIES, Results
from loadgen.topics.corpus import write_corpus
from loadgen.topics.executors import in_this_process
from loadgen.topics.plan import TopicPlan

if TYPE_CHECKING:
    from collections.abc import Callable

QUICK, FULL = 200_000, 1_000_000
PER_NAMESPACE = 10_000
DOCUMENT = """\
name: bench
clients:
  - {name: steady, do: list, count: 20, every: 1s}
  - {name: storm, do: discover, library: java-poll, count: 40, arrive: {kind: poisson, rate: 5/s}}
phases: {measure: 20s}
"""
GROUPED = "SELECT \"group\", outcome, count(*) FROM read_parquet('{}') GROUP BY ALL"
BY_GROUP = "by-group"
"""The most frequent query of a report: counts and percentiles."""
TOPICS_GOAL = 1.0


def run(options: BenchOptions) -> BenchResult:
    """Measure topics and queries once in each round, with loadgen and with plain code."""
    rows = FULL if options.full else QUICK
    with tempfile.TemporaryDirectory(prefix="floodgate-bench-") as name:
        folder = Path(name)
        options.note("playing a run in virtual time")
        directory = large_run(folder, rows)
        requests = GROUPED.format(directory / "requests" / "*.parquet")
        plan = TopicPlan(rows, rows // PER_NAMESPACE, seed=7)
        sides: dict[str, Callable[[], object]] = {
            "topics": lambda: write_corpus(plan, folder / "made", 4, in_this_process(_nobody)),
            "plain topics": lambda: plain_topics(plan, folder / "plain.parquet"),
            BY_GROUP: lambda: ask(directory, BY_GROUP),
            "all questions": lambda: ask(directory, *QUERIES),
            "count by group": lambda: duckdb.sql(requests).fetchall(),
        }
        rounds = []
        for number in range(options.rounds):
            options.note(f"round {number + 1}: {rows:,} topics, {rows:,} requests")
            rounds.append({name: seconds_of(side) for name, side in sides.items()})
    return BenchResult(figures_of(rows, rounds), rounds=rounds)


def figures_of(rows: int, rounds: list[dict[str, float]]) -> list[Figure]:
    """Return the rates of all sides, and ratios of sides in the same round."""

    def rate(side: str) -> list[float]:
        return [rows / each[side] for each in rounds]

    def ratio(side: str, plain: str) -> list[float]:
        return [each[plain] / each[side] for each in rounds]

    return [
        Figure("topics made, one process", "topics/s", rate("topics")),
        Figure("names of a plain loop, sorted and written", "topics/s", rate("plain topics")),
        Figure("topics / plain loop", "ratio", ratio("topics", "plain topics"), TOPICS_GOAL),
        Figure("requests, counts and percentiles by group", "rows/s", rate(BY_GROUP)),
        Figure(f"requests, all {len(QUERIES)} questions", "rows/s", rate("all questions")),
        Figure("requests, DuckDB's bare count by group", "rows/s", rate("count by group")),
        Figure("by group / bare count", "ratio", ratio(BY_GROUP, "count by group")),
        Figure("all questions / bare count", "ratio", ratio("all questions", "count by group")),
    ]


def seconds_of(work: Callable[[], object]) -> float:
    """Call ``work``, and return its duration in seconds."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _nobody(done: int) -> None:
    """Ignore a report of progress."""


def plain_topics(plan: TopicPlan, file: Path) -> None:
    """Write as many names of a plan's length in a plain loop, without partitions or properties."""
    names = sorted(
        f"persistent://tenant-{number % 10}/namespace-{number % plan.namespaces}/"
        f"order.created-{number * 2_654_435_761 % (1 << 32):08x}{number:044x}"
        for number in range(plan.topics)
    )
    spaces = [name.split("://")[1].rpartition("/")[0] for name in names]
    columns = {"tenant": [each.split("/")[0] for each in spaces], "namespace": spaces}
    pq.write_table(pa.table({**columns, "topic": names}), file, compression="zstd")


def ask(directory: Path, *questions: str) -> None:
    """Open a run and execute some of the shipped queries, like ``loadgen report`` does."""
    with Results.open(directory) as results:
        for question in questions:
            results.query(question)


def large_run(folder: Path, rows: int) -> Path:
    """Simulate a small run, and repeat its rows of requests until there are ``rows``."""
    directory = experiment(parse_document(DOCUMENT), RunOptions(out=folder, place="virtual"))
    (file,) = (directory / "requests").glob("*.parquet")
    played = pq.read_table(file)
    many = pa.concat_tables([played] * -(-rows // len(played))).slice(0, rows)
    pq.write_table(many, file, compression="zstd")
    return directory
