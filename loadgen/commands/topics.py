"""The commands ``loadgen topics``, ``snapshot`` and ``load``: make, save and create topics."""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from loadgen.commands.options import AsJson, Confirmed  # noqa: TC001 (evaluated by Typer)
from loadgen.commands.shown import console, counting, print_object, print_sentences, table_of
from loadgen.errors import UsageError
from loadgen.loopback import require_own_cluster
from loadgen.topics.corpus import Corpus, open_corpus, write_corpus
from loadgen.topics.distributions import EVEN, FEW, ONE_TOPIC
from loadgen.topics.executors import Executor, in_processes, in_spark, in_this_process
from loadgen.topics.listed import write_listed_corpus
from loadgen.topics.listings import take_snapshot, verify_loaded
from loadgen.topics.loading import load_by_import, load_by_rest
from loadgen.topics.plan import USUAL, TopicPlan, TopicShape
from loadgen.topics.reading import count_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


# Few enough rows for progress in steps, enough to be worth a task.
_ROWS_PER_FILE = 100_000
# Fewer files are written before a second process would have started.
_FILES_WORTH_PROCESSES = 8
_PROCESSES_WORTH_BYTES = 16_000_000
_PLAIN_SHARE, _MOST_CALLS = 0.15, 256
Made = Literal["processes", "spark"]
BROKER = "http://127.0.0.1:8080"


def topics(  # noqa: PLR0913 (each parameter is an option of the command)
    *,
    topics: int = 1_000_000,
    namespaces: int = 100,
    seed: int = 7,
    out: Path = Path("out/topics"),
    place: Made = "processes",
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="PATH",
            help="Your own names: a text file with one name a line, a Parquet file with a column "
            "`topic` (and `partitions`, `properties`), or a folder of such files.",
        ),
    ] = None,
    skip_invalid: bool = False,
    mean_name_bytes: int = 100,
    name_lengths: str = EVEN,
    plain_share: float | None = None,
    partitions: str = FEW,
    tenants: int | None = None,
    tenant_skew: float = 1.0,
    namespace_skew: float = 0.0,
    properties: str = USUAL,
    non_persistent_share: float = 0.0,
    master: str | None = None,
    as_json: AsJson = False,
) -> None:
    r"""Make topic names as Parquet files: synthetic, or from your own list.

    The manifest in the folder has the number and the hash of each namespace's
    topics, by which other commands check answers.

    Examples:
      loadgen topics --topics 1000000 --namespaces 100 --seed 7 --out out/topics

      loadgen topics --topics 2000 --namespaces 4 --json

      loadgen topics --topics 1000000 --namespaces 500 \
        --namespace-skew 1.1 --name-lengths long-tail

      loadgen topics --topics 200000 --namespaces 20 \
        --partitions one-topic --out out/one-topic-each

      loadgen topics --from topics.txt --out out/mine

    Options:
        topics: Number of topic names; each partition counts.
        namespaces: Number of namespaces.
        seed: The same seed makes the same topics.
        out (DIR): Directory for the files.
        place (PLACE): Where topics are made: processes; spark, as with --master.
        skip_invalid: Skip invalid names of --from.
        mean_name_bytes: Shape: mean length of a full name, bytes.
        name_lengths (WORD): Shape: lengths of names: even, fixed, long-tail.
        plain_share: Shape: share of names that are topics without partitions. Default: 0.15,
            or 0 with one-topic.
        partitions (WORD): Shape: partitions of a topic: few (3 to 64), zipf:EXPONENT, a number, or
            one-topic (a namespace is one topic).
        tenants: Shape: number of tenants. Default: the square root of the namespaces.
        tenant_skew: Shape: Zipf exponent of namespaces per tenant.
        namespace_skew: Shape: Zipf exponent of topics per namespace.
        properties (WORD): Shape: properties of a topic: usual (2 or 3), none, or a number.
        non_persistent_share: Shape: share of non-persistent topics.
        master (URL): Spark master.
    """
    started = time.perf_counter()
    place = "spark" if master else place
    if source is not None:
        corpus = _listed(source, out, place, master, skip_invalid=skip_invalid, as_json=as_json)
    else:
        if plain_share is None:
            plain_share = 0.0 if partitions == ONE_TOPIC else _PLAIN_SHARE
        skews = tenant_skew, namespace_skew, tenants
        words = name_lengths, partitions, properties
        try:
            shape = TopicShape(mean_name_bytes, plain_share, *skews, *words, non_persistent_share)
            plan = TopicPlan(topics, namespaces, seed, shape)
        except ValueError as error:
            raise UsageError(str(error)) from error
        files = min(namespaces, max(4, topics // _ROWS_PER_FILE))
        with (
            _executors(place, master, files) as executor_for,
            counting(f"Making {topics:,} topics, parts", files, as_json=as_json) as on_part_done,
        ):
            corpus = write_corpus(plan, out, files, executor_for(on_part_done))
    _show_corpus(corpus, started, as_json=as_json)


def _listed(
    source: Path, out: Path, place: Made, master: str | None, *, skip_invalid: bool, as_json: bool
) -> Corpus:
    """Convert an operator's list of topics to a corpus, and report the names left out.

    Raises:
        UsageError: The output folder holds other files, or the list is unreadable or has invalid
            names.
        LoadgenError: Spark failed, or the files cannot be written.
    """
    if not source.exists():
        raise UsageError(f"--from {source} does not exist.")
    size = source.stat().st_size if source.is_file() else sys.maxsize
    worth = _FILES_WORTH_PROCESSES if size > _PROCESSES_WORTH_BYTES else 1
    with (
        _executors(place, master, worth) as executor_for,
        counting(f"Reading {source}", None, as_json=as_json) as on_read,
        counting(f"Writing {out}", None, as_json=as_json) as on_written,
    ):
        rounds = executor_for(on_read), executor_for(on_written)
        made = write_listed_corpus(source, out, rounds, skip_invalid=skip_invalid)
    if made.invalid.count:
        typer.echo(str(made.invalid), err=True)
    if made.duplicates:
        typer.echo(f"{made.duplicates:,} names that came twice were left out", err=True)
    return made.corpus


@contextmanager
def _executors(
    place: Made, master: str | None, files: int
) -> Iterator[Callable[[Callable[[int], None]], Executor]]:
    """Yield a function that returns a new executor for a given progress callback.

    In Spark all executors share one session.
    """
    if place == "processes":
        yield in_processes if files >= _FILES_WORTH_PROCESSES else in_this_process
        return
    from loadgen.spark.session import SparkSettings, spark_session

    with spark_session(SparkSettings("loadgen topics", master=master)) as session:
        yield partial(in_spark, session)


def _show_corpus(corpus: Corpus, started: float, *, as_json: bool) -> None:
    """Print the numbers of topics and bytes in a corpus, and how many seconds it took to make."""
    manifest = corpus.manifest
    told = {
        "topics": manifest.topics,
        "namespaces": len(manifest.namespaces),
        "largest_namespace": max(entry.topics for entry in manifest.namespaces.values()),
        "tenants": len(manifest.tenants),
        "seed": manifest.seed,
        "mean_name_bytes": round(manifest.name_bytes / manifest.topics, 1),
        "files": len(corpus.files),
        "file_bytes": corpus.file_bytes,
        "seconds": round(time.perf_counter() - started, 2),
    }
    if as_json:
        print_object(1, {"directory": corpus.directory, **told})
        return
    rows = [
        (name.replace("_", " "), str(value) if name == "seed" else f"{value:,}")
        for name, value in told.items()
        if value is not None
    ]
    console().print(table_of((f"Topics in {corpus.directory}", ""), rows))


def snapshot(
    *,
    admin_url: str = BROKER,
    out: Path = Path("out/snapshot"),
    namespaces: Annotated[
        list[str] | None,
        typer.Option(
            "--namespace", help="Namespace to read; may be repeated. Default: all but pulsar/*."
        ),
    ] = None,
    properties: bool = False,
    as_json: AsJson = False,
) -> None:
    """Save the topic names of a running cluster, for the other loadgen commands.

    Reads only: the lists of tenants, namespaces and topics of a Floodgate or a
    Pulsar.

    Examples:
      loadgen snapshot --admin-url http://127.0.0.1:8080 --out out/mine

      loadgen snapshot --namespace my-tenant/my-namespace --properties --json

    Options:
        admin_url (URL): Web address of one of the brokers.
        properties: Read topic properties too: one call for each topic.
        out (DIR): Directory for the files.
    """
    started = time.perf_counter()
    with counting(f"Reading the topics of {admin_url}", None, as_json=as_json) as on_topics:
        taking = take_snapshot(
            admin_url, out, on_topics, namespaces=namespaces or (), properties=properties
        )
        corpus = asyncio.run(taking)
    _show_corpus(corpus, started, as_json=as_json)


def load(  # noqa: PLR0913 (each parameter is an option of the command)
    path: Path,
    admin_url: str = BROKER,
    *,
    rest: bool = False,
    concurrency: int = 16,
    skip_invalid: bool = False,
    resume: bool = False,
    no_verify: bool = False,
    confirmed: Confirmed = False,
    as_json: AsJson = False,
) -> None:
    r"""Create topics in a running server, and check that it lists all of them.

    A Floodgate broker reads the files itself, so it must see the same paths. With
    --rest each topic is one call, however many partitions it has: with
    `loadgen topics --partitions one-topic` a few calls make many names.

    Examples:
      loadgen load out/topics

      loadgen load out/topics --resume

      loadgen load topics.txt --rest --skip-invalid \
        --admin-url http://127.0.0.1:8080

    Options:
        path (PATH): Directory of `loadgen topics`, Parquet file, or text file.
        admin_url (URL): Web address of the broker.
        rest: Create each topic by admin REST, required for a real Pulsar.
        concurrency: Parallel calls, with --rest.
        skip_invalid: Skip invalid topics; by default an invalid topic stops the load.
        resume: Continue an interrupted load.
        no_verify: Do not compare the server's listing afterwards.
    """
    if not 1 <= concurrency <= _MOST_CALLS:
        raise UsageError(f"--concurrency {concurrency}: must be 1 to {_MOST_CALLS}")
    require_own_cluster(admin_url, confirmed=confirmed)
    if not path.exists():
        raise UsageError(f"{path} does not exist; make a corpus with: loadgen topics --out {path}")
    text = f"Creating the topics of {path}" if rest else f"Importing {path}"
    way = partial(load_by_rest, concurrency=concurrency) if rest else load_by_import
    with counting(text, count_names(path), as_json=as_json) as on_topics:
        loaded = asyncio.run(
            way(path, admin_url, on_topics, skip_invalid=skip_invalid, resume=resume)
        )
    if loaded.report:
        typer.echo(loaded.report, err=True)
    if not no_verify and path.is_dir() and not loaded.skipped:
        count = len(open_corpus(path).manifest.namespaces)
        with counting(f"Listing {count:,} namespaces", count, as_json=as_json) as on_namespaces:
            found = asyncio.run(verify_loaded(path, admin_url, on_namespaces, imported=not rest))
        loaded = replace(loaded, verified=found.topics, not_verified=found.left_out)
    if as_json:
        print_object(1, {name: each for name, each in vars(loaded).items() if name != "report"})
        return
    rate = loaded.topics / loaded.seconds if loaded.seconds else 0.0
    counted = {
        "{:,} topics existed already": loaded.existing,
        "{:,} invalid topics were left out": loaded.skipped,
        "{:,} calls were made again": loaded.retries,
        "after {:,} that were done before": loaded.resumed,
    }
    more = "".join(f", {words.format(count)}" for words, count in counted.items() if count)
    said = [
        f"Loaded {loaded.topics:,} names in {loaded.namespaces:,} namespaces from {path} in "
        f"{loaded.seconds:.1f} s ({rate:,.0f} a second{more})"
    ]
    if loaded.not_verified:
        said.append(
            f"The server lists all {loaded.verified:,} persistent ones; the "
            f"{loaded.not_verified:,} non-persistent ones are not compared, as a Pulsar lists "
            "those only while they are used"
        )
    elif loaded.verified is not None:
        said.append("The server lists all of them")
    print_sentences(said)
