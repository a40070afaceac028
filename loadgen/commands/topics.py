"""``loadgen topics``: make a corpus, with Spark or without."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from loadgen.commands.progress_bar import counting
from loadgen.corpus.corpus import Corpus, write_corpus
from loadgen.corpus.executors import in_spark, in_this_process
from loadgen.corpus.topic_plan import TopicPlan, TopicShape
from loadgen.errors import UsageError
from loadgen.executors.processes import ExecutorKind

# Rows of a file: small enough for progress that moves, large enough that tasks are worth starting.
_ROWS_PER_FILE = 100_000


def topics(  # noqa: PLR0913 - one parameter for each option
    topics: Annotated[int, typer.Option(help="Listed names, partitions counted.")] = 1_000_000,
    namespaces: Annotated[int, typer.Option(help="Namespaces, all of one size.")] = 100,
    seed: Annotated[int, typer.Option(help="Same seed, same topics.")] = 7,
    out: Annotated[Path, typer.Option(help="Directory of the corpus.")] = Path("out/topics"),
    executor: Annotated[
        ExecutorKind, typer.Option(help="process needs neither Spark nor Java.")
    ] = ExecutorKind.SPARK,
    mean_name_bytes: Annotated[int, typer.Option(help="Mean length of a full name.")] = 100,
    plain_share: Annotated[float, typer.Option(help="Share of names without partitions.")] = 0.15,
    master: Annotated[str | None, typer.Option(help="Spark master; local without it.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Make synthetic topics as Parquet, with a manifest of counts and hashes.

    Examples:
      loadgen topics --topics 1000000 --namespaces 100 --seed 7 --out out/topics

      loadgen topics --topics 2000 --namespaces 4 --executor process --json
    """
    try:
        plan = TopicPlan(topics, namespaces, seed, TopicShape(mean_name_bytes, plain_share))
    except ValueError as error:
        raise UsageError(str(error)) from error
    started = time.perf_counter()
    corpus = make_topics(plan, out, executor, master)
    seconds = time.perf_counter() - started
    if as_json:
        sys.stdout.write(f"{json.dumps(corpus_summary(corpus, seconds))}\n")
    else:
        Console().print(_summary_table(corpus_summary(corpus, seconds)))


def make_topics(plan: TopicPlan, out: Path, executor: ExecutorKind, master: str | None) -> Corpus:
    """Make a corpus with a progress display on standard error.

    Raises:
        UsageError: The place is taken, or there is no Java for Spark.
        LoadgenError: Spark failed, or the files cannot be written.
    """
    files = min(plan.namespaces, max(4, plan.topics // _ROWS_PER_FILE))
    with counting(f"Making {plan.topics:,} topics", files) as on_part_done:
        if executor is ExecutorKind.PROCESS:
            return write_corpus(plan, out, files, in_this_process(on_part_done))
        from loadgen.spark.session import SparkSettings, spark_session

        with spark_session(SparkSettings("loadgen topics", master=master)) as session:
            return write_corpus(plan, out, files, in_spark(session, on_part_done))


def corpus_summary(corpus: Corpus, seconds: float) -> dict[str, object]:
    """Return what ``--json`` prints about a corpus that was made in ``seconds``."""
    manifest = corpus.manifest
    return {
        "schema_version": 1,
        "directory": str(corpus.directory),
        "topics": manifest.topics,
        "namespaces": len(manifest.namespaces),
        "tenants": len(manifest.tenants),
        "seed": manifest.seed,
        "mean_name_bytes": round(manifest.name_bytes / manifest.topics, 1),
        "files": len(corpus.files),
        "file_bytes": corpus.file_bytes,
        "seconds": round(seconds, 2),
    }


def _summary_table(summary: dict[str, object]) -> Table:
    """Return the summary for people."""
    table = Table(title=f"Topics in {summary['directory']}", show_header=False)
    for name, value in summary.items():
        if name not in ("schema_version", "directory"):
            text = f"{value:,}" if isinstance(value, int) and name != "seed" else str(value)
            table.add_row(name.replace("_", " "), text)
    return table
