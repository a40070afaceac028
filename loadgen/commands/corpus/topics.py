"""``loadgen topics``: make a corpus, of synthetic topics or of an operator's list."""

from __future__ import annotations

import json
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from loadgen.commands.corpus.summary import corpus_summary, summary_table
from loadgen.commands.progress_bar import counting
from loadgen.errors import UsageError
from loadgen.executors.processes import ExecutorKind
from loadgen.topics.corpus import Corpus, write_corpus
from loadgen.topics.distributions import EVEN, FEW, LENGTHS, ONE_TOPIC, PARTITIONS
from loadgen.topics.executors import Executor, in_processes, in_spark, in_this_process
from loadgen.topics.listed import write_listed_corpus
from loadgen.topics.plan import USUAL, TopicPlan, TopicShape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

# Rows of a file: small enough for progress that moves, large enough that tasks are worth starting.
_ROWS_PER_FILE = 100_000
# Fewer files than these are written before a second process has started.
_FILES_WORTH_PROCESSES = 8
_PROCESSES_WORTH_BYTES = 16_000_000
_PLAIN_SHARE = 0.15
_SHAPE = "Shape"


def topics(  # noqa: PLR0913 - one parameter for each option
    topics: Annotated[
        int, typer.Option(help="Number of topic names; each partition counts.")
    ] = 1_000_000,
    namespaces: Annotated[int, typer.Option(help="Number of namespaces.")] = 100,
    seed: Annotated[int, typer.Option(help="The same seed makes the same topics.")] = 7,
    out: Annotated[Path, typer.Option(help="Directory for the files.")] = Path("out/topics"),
    executor: Annotated[
        ExecutorKind, typer.Option(help="process: plain processes, without Spark and Java.")
    ] = ExecutorKind.SPARK,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="Your own names: a text file with one name a line, a Parquet file with a column "
            "`topic` (and `partitions`, `properties`), or a folder of such files.",
            show_default=False,
        ),
    ] = None,
    skip_invalid: Annotated[
        bool, typer.Option("--skip-invalid", help="Skip invalid names of --from.")
    ] = False,
    mean_name_bytes: Annotated[
        int, typer.Option(help="Mean length of a full name, bytes.", rich_help_panel=_SHAPE)
    ] = 100,
    name_lengths: Annotated[
        str, typer.Option(help=f"Lengths of names: {', '.join(LENGTHS)}.", rich_help_panel=_SHAPE)
    ] = EVEN,
    plain_share: Annotated[
        float | None,
        typer.Option(
            help="Share of names that are topics without partitions.",
            show_default=f"{_PLAIN_SHARE}, or 0 with {ONE_TOPIC}",
            rich_help_panel=_SHAPE,
        ),
    ] = None,
    partitions: Annotated[
        str, typer.Option(help=f"Partitions of a topic: {PARTITIONS}.", rich_help_panel=_SHAPE)
    ] = FEW,
    tenants: Annotated[
        int | None,
        typer.Option(
            help="Number of tenants.",
            show_default="the square root of the namespaces",
            rich_help_panel=_SHAPE,
        ),
    ] = None,
    tenant_skew: Annotated[
        float,
        typer.Option(help="Zipf exponent of namespaces per tenant.", rich_help_panel=_SHAPE),
    ] = 1.0,
    namespace_skew: Annotated[
        float,
        typer.Option(help="Zipf exponent of topics per namespace.", rich_help_panel=_SHAPE),
    ] = 0.0,
    properties: Annotated[
        str,
        typer.Option(
            help="Properties of a topic: usual (2 or 3), none, or a number.", rich_help_panel=_SHAPE
        ),
    ] = USUAL,
    non_persistent_share: Annotated[
        float, typer.Option(help="Share of non-persistent topics.", rich_help_panel=_SHAPE)
    ] = 0.0,
    master: Annotated[str | None, typer.Option(help="Spark master URL; local without it.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    r"""Make topic names as Parquet files: synthetic ones, or from your own list.

    A manifest beside them has the count and the hash of each namespace, by which
    other commands check answers.

    Examples:
      loadgen topics --topics 1000000 --namespaces 100 --seed 7 --out out/topics

      loadgen topics --topics 2000 --namespaces 4 --executor process --json

      loadgen topics --topics 1000000 --namespaces 500 \
        --namespace-skew 1.1 --name-lengths long-tail

      loadgen topics --topics 200000 --namespaces 20 \
        --partitions one-topic --out out/one-topic-each

      loadgen topics --from topics.txt --out out/mine
    """
    started = time.perf_counter()
    if source is None:
        if plain_share is None:
            plain_share = 0.0 if partitions == ONE_TOPIC else _PLAIN_SHARE
        try:
            shape = TopicShape(
                mean_name_bytes,
                plain_share,
                tenant_skew,
                namespace_skew,
                tenants,
                name_lengths,
                partitions,
                properties,
                non_persistent_share,
            )
            plan = TopicPlan(topics, namespaces, seed, shape)
        except ValueError as error:
            raise UsageError(str(error)) from error
        corpus = make_topics(plan, out, executor, master)
    else:
        corpus = topics_from(source, out, executor, master, skip_invalid=skip_invalid)
    summary = corpus_summary(corpus, time.perf_counter() - started)
    if as_json:
        sys.stdout.write(f"{json.dumps(summary)}\n")
    else:
        Console().print(summary_table(summary))


def make_topics(plan: TopicPlan, out: Path, executor: ExecutorKind, master: str | None) -> Corpus:
    """Make a corpus with a progress display on standard error.

    Raises:
        UsageError: The place is taken, or there is no Java for Spark.
        LoadgenError: Spark failed, or the files cannot be written.
    """
    files = min(plan.namespaces, max(4, plan.topics // _ROWS_PER_FILE))
    with (
        _executors(executor, master, files) as executor_for,
        counting(f"Making {plan.topics:,} topics", files) as on_part_done,
    ):
        return write_corpus(plan, out, files, executor_for(on_part_done))


def topics_from(
    source: Path, out: Path, executor: ExecutorKind, master: str | None, *, skip_invalid: bool
) -> Corpus:
    """Make a corpus of an operator's list, and say what of it was left out.

    Raises:
        UsageError: The place is taken, the list is none, or has invalid names.
        LoadgenError: Spark failed, or the files cannot be written.
    """
    if not source.exists():
        raise UsageError(f"--from {source} does not exist.")
    if out.resolve() == source.resolve():
        raise UsageError(f"--out {out} is the list itself: give another folder.")
    with ExitStack() as stack:
        size = source.stat().st_size if source.is_file() else sys.maxsize
        worth = _FILES_WORTH_PROCESSES if size > _PROCESSES_WORTH_BYTES else 1
        executor_for = stack.enter_context(_executors(executor, master, worth))
        rounds = [
            executor_for(stack.enter_context(counting(text, None)))
            for text in (f"Reading {source}", f"Writing {out}")
        ]
        made = write_listed_corpus(source, out, rounds, skip_invalid=skip_invalid)
    if made.invalid.count:
        typer.echo(str(made.invalid), err=True)
    if made.duplicates:
        typer.echo(f"{made.duplicates:,} names that came twice were left out", err=True)
    return made.corpus


@contextmanager
def _executors(
    kind: ExecutorKind, master: str | None, files: int
) -> Iterator[Callable[[Callable[[int], None]], Executor]]:
    """Hold what executors need; hand out the function that makes one with its progress."""
    if kind is ExecutorKind.PROCESS:
        yield in_processes if files >= _FILES_WORTH_PROCESSES else in_this_process
        return
    from loadgen.spark.session import SparkSettings, spark_session

    with spark_session(SparkSettings("loadgen topics", master=master)) as session:
        yield _of_session(session)


def _of_session(session: SparkSession) -> Callable[[Callable[[int], None]], Executor]:
    return lambda on_part_done: in_spark(session, on_part_done)
