"""The speed of importing topics from Parquet files; 1,000,000 topics with ``--full``."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.processes import run_json
from benchmarks.result import BenchOptions, BenchResult, Figure
from loadgen.topics.corpus import write_corpus
from loadgen.topics.executors import in_this_process
from loadgen.topics.plan import TopicPlan

if TYPE_CHECKING:
    from collections.abc import Callable

QUICK_TOPICS = 200_000
FULL_TOPICS = 1_000_000
TOPICS_PER_NAMESPACE = 10_000
TOPICS_PER_FILE = 100_000
SEED = 7
GOAL_PER_SECOND = 200_000.0


def run(options: BenchOptions) -> BenchResult:
    """Create the topics once, and import them once in each round.

    Raises:
        BenchError: An import failed.
    """
    topics = FULL_TOPICS if options.full else QUICK_TOPICS
    with tempfile.TemporaryDirectory(prefix="floodgate-bench-") as folder:
        corpus = Path(folder) / "topics"
        options.note(f"making {topics:,} topics")
        write_topics(corpus, topics, lambda _: None)
        rounds = []
        for number in range(options.rounds):
            options.note(f"round {number + 1}: importing {topics:,} topics")
            rounds.append(run_json("benchmarks.imports.client", str(corpus)))
    rates = [found["topics"] / found["seconds"] for found in rounds]
    megabytes = [found["peak_resident_bytes"] / 1e6 for found in rounds]
    figures = [
        # The goal is for a million topics; fewer give an estimate.
        Figure(f"import of {topics:,} topics", "topics/s", rates, _goal(options)),
        Figure("peak resident memory of the import", "MB", megabytes),
    ]
    return BenchResult(figures, rounds=rounds)


def write_topics(out: Path, topics: int, on_part_done: Callable[[int], None]) -> None:
    """Create topics as a corpus, TOPICS_PER_NAMESPACE in each namespace, without Spark."""
    plan = TopicPlan(topics, max(1, topics // TOPICS_PER_NAMESPACE), SEED)
    parts = max(1, topics // TOPICS_PER_FILE)
    write_corpus(plan, out, parts, in_this_process(on_part_done))


def _goal(options: BenchOptions) -> float | None:
    return GOAL_PER_SECOND if options.full else None
