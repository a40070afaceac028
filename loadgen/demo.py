"""The demo: a million topics, then the same restart storm three times with fresh servers.

Each run has a broker and a proxy of its own, as separate processes, so that what one run leaves in
memory cannot help or hurt the next. One Spark session makes the topics and drives all storms. The
second part, one peer that reads nothing, follows in :mod:`loadgen.demo_stuck`.
"""

from __future__ import annotations

import json
import shutil
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from loadgen.connecting import raise_open_file_limit
from loadgen.corpus import in_spark, in_this_process, write_corpus
from loadgen.demo_checks import demo_checks, exit_code
from loadgen.demo_plan import (
    CLIENT_TIMEOUT_SECONDS,
    RUNS,
    SOCKET_BUFFER_BYTES,
    STUCK_RUNS,
    DemoRun,
    StormSize,
    broker_settings,
    mean_answer_bytes,
    proxy_settings,
)
from loadgen.demo_stuck import run_stuck_part
from loadgen.failures import LoadgenError
from loadgen.pictures import RUN_DIRECTORIES
from loadgen.processes import ServerLaunch, running_server
from loadgen.report import write_report
from loadgen.report_data import RunSummary, parse_summary
from loadgen.run_directory import load_run
from loadgen.scenario import NamespaceExpectation, StormScenario
from loadgen.storm_run import RunOptions, execute
from loadgen.stuck_checks import stuck_checks
from loadgen.units import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from loadgen.check_result import CheckResult
    from loadgen.corpus import Corpus
    from loadgen.failures import ExitCode
    from loadgen.live import StormCounters
    from loadgen.processes import ServerProcess
    from loadgen.steps import Steps
    from loadgen.topics import TopicPlan

SCHEMA_VERSION = 1
REPORT_NAME = "report.html"
SUMMARY_NAME = "summary.json"
TITLE = "A restart storm, and one peer that does not read"
_CORPUS_FILES = 8
# The proxy has a connection to the broker for each client's, in profile pulsar.
_CONNECTIONS_PER_CLIENT = 2


@dataclass(frozen=True)
class DemoOptions:
    """What the demo runs and where its results go.

    Attributes:
        topics: The topics to make.
        clients: Connections, each of which asks once.
        read_rate_bytes_per_second: How fast each client reads; 0 is unlimited.
        out: The directory of all results.
        executor: ``spark``, or ``process`` for the same without Spark and Java.
        tasks: Spark tasks, or processes, that share the clients.
        keep: Whether the topics stay on disk.
    """

    topics: TopicPlan
    clients: int
    read_rate_bytes_per_second: float
    out: Path
    executor: str = "spark"
    tasks: int = 2
    keep: bool = False


@dataclass(frozen=True)
class DemoResult:
    """What the demo found: of the storms, and of the second part."""

    summaries: Mapping[str, RunSummary]
    stuck: Mapping[str, RunSummary]
    checks: Sequence[CheckResult]
    report: Path
    summary: Path
    duration_seconds: float

    @property
    def exit_code(self) -> ExitCode:
        """What the demo's process exits with."""
        return exit_code([*self.summaries.values(), *self.stuck.values()], self.checks)


def run_demo(options: DemoOptions, steps: Steps) -> DemoResult:
    """Make the topics, run the three storms and the second part, judge, write what was found.

    Raises:
        LoadgenError: A server did not start, or a storm could not be run.
    """
    _prepare(options)
    try:
        with _session(options, steps) as session:
            corpus = _make_topics(options, session, steps)
            documents = {run.name: _run_storm(run, corpus, options, session, steps) for run in RUNS}
        stuck = run_stuck_part(options.out, _stuck_directory(options), steps, _storm_notes)
    finally:
        if not options.keep:
            shutil.rmtree(_corpus_directory(options), ignore_errors=True)
            shutil.rmtree(_stuck_directory(options), ignore_errors=True)
    with steps.step("Writing the report"):
        return _conclude(options, corpus, (documents, stuck), steps)


def _prepare(options: DemoOptions) -> None:
    """Make room for the results; those of an earlier demo must not pass for this one's."""
    raise_open_file_limit(options.clients * _CONNECTIONS_PER_CLIENT)
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        for name in (REPORT_NAME, SUMMARY_NAME):
            (options.out / name).unlink(missing_ok=True)
    except OSError as error:
        raise LoadgenError(
            f"--out {options.out} cannot be written ({error.strerror}); choose another directory"
        ) from error


@contextmanager
def _session(options: DemoOptions, steps: Steps) -> Iterator[SparkSession | None]:
    """One Spark session for the whole demo; None where processes do its work."""
    if options.executor != "spark":
        yield None
        return
    # Spark is imported only where it is asked for: it takes a second.
    from loadgen.spark import SparkSettings, spark_session

    with ExitStack() as stack:
        with steps.step("Starting Spark"):
            settings = SparkSettings("loadgen demo", cores=options.tasks)
            session = stack.enter_context(spark_session(settings))
        yield session


def _corpus_directory(options: DemoOptions) -> Path:
    return options.out / "topics"


def _stuck_directory(options: DemoOptions) -> Path:
    return options.out / "stuck-topics"


def _make_topics(options: DemoOptions, session: SparkSession | None, steps: Steps) -> Corpus:
    plan = options.topics
    what = f"Making {plan.topics:,} topics in {plural(plan.namespaces, 'namespace')}"
    with steps.step(f"{what} with Spark" if session else what) as note:

        def on_part_done(done: int) -> None:
            note(f"{done} of {min(_CORPUS_FILES, plan.namespaces)} files")

        executor = in_spark(session, on_part_done) if session else in_this_process(on_part_done)
        return write_corpus(plan, _corpus_directory(options), _CORPUS_FILES, executor)


def _run_storm(
    run: DemoRun,
    corpus: Corpus,
    options: DemoOptions,
    session: SparkSession | None,
    steps: Steps,
) -> dict[str, Any]:
    """One run with fresh servers; returns its summary as written.

    Raises:
        KeyboardInterrupt: It was interrupted: what it found is half a run.
    """
    with _servers(run, corpus, options, steps) as (broker, proxy):
        what = f"{run.label}: {plural(options.clients, 'client')} ask at once"
        with steps.step(what) as note:
            result = execute(
                _scenario(proxy.service_url, corpus, options),
                RunOptions(
                    name=run.name,
                    label=run.label,
                    out=options.out / RUN_DIRECTORIES,
                    executor=options.executor,
                    tasks=min(options.tasks, options.clients),
                    spark=session,
                    broker_admin_url=broker.web_url,
                    proxy_admin_url=proxy.web_url,
                    broker_pid=broker.pid,
                    proxy_pid=proxy.pid,
                    on_progress=_storm_notes(note),
                ),
            )
            if result.interrupted:
                raise KeyboardInterrupt
            return result.summary


@contextmanager
def _servers(
    run: DemoRun, corpus: Corpus, options: DemoOptions, steps: Steps
) -> Iterator[tuple[ServerProcess, ServerProcess]]:
    """Broker and proxy of one run; the proxy stops first, so that it never misses its broker."""
    logs = options.out / RUN_DIRECTORIES / run.name
    importing = ("--import", str(corpus.directory))
    with ExitStack() as stack:
        with steps.step(f"{run.label}: servers start, load the topics"):
            broker_launch = ServerLaunch(
                "broker", broker_settings(run), logs / "broker.log", importing
            )
            broker = stack.enter_context(running_server(broker_launch))
            proxy_launch = ServerLaunch("proxy", proxy_settings(run, broker), logs / "proxy.log")
            proxy = stack.enter_context(running_server(proxy_launch))
        yield broker, proxy


def _scenario(service_url: str, corpus: Corpus, options: DemoOptions) -> StormScenario:
    return StormScenario(
        service_url=service_url,
        namespaces=tuple(
            NamespaceExpectation(name=name, topics=entry.topics, hash=entry.hash)
            for name, entry in corpus.manifest.namespaces.items()
        ),
        clients=options.clients,
        read_rate_bytes_per_second=options.read_rate_bytes_per_second,
        receive_buffer_bytes=SOCKET_BUFFER_BYTES,
        timeout_seconds=CLIENT_TIMEOUT_SECONDS,
    )


def _storm_notes(note: Callable[[str], None]) -> Callable[[StormCounters], None]:
    def show(counters: StormCounters) -> None:
        words = f"{counters.answered:,} answered, {counters.refused:,} refused"
        failed = counters.wrong + counters.timeout + counters.disconnected + counters.unreachable
        note(f"{words}, {failed:,} failed" if failed else words)

    return show


def storm_size(options: DemoOptions, corpus: Corpus) -> StormSize:
    """How large the storm was, from the topics that were really made."""
    manifest = corpus.manifest
    answer = mean_answer_bytes(manifest.topics, manifest.name_bytes, len(manifest.namespaces))
    return StormSize(options.clients, answer)


def _conclude(
    options: DemoOptions,
    corpus: Corpus,
    documents: tuple[Mapping[str, dict[str, Any]], Mapping[str, dict[str, Any]]],
    steps: Steps,
) -> DemoResult:
    """Judge the runs of both parts and write what is left for the reader."""
    storms, stuck = (
        {name: parse_summary(document) for name, document in part.items()} for part in documents
    )
    checks = demo_checks(storms, storm_size(options, corpus)) + stuck_checks(stuck)
    runs = [load_run(options.out / RUN_DIRECTORIES / run.name) for run in (*RUNS, *STUCK_RUNS)]
    report = options.out / REPORT_NAME
    write_report(report, runs, title=TITLE, checks=checks)
    duration_seconds = steps.elapsed_seconds
    summary = options.out / SUMMARY_NAME
    document = {
        **_described(options, corpus),
        "runs": dict(documents[0]),
        "stuck": dict(documents[1]),
        "checks": [asdict(check) for check in checks],
        "passed": all(check.passed for check in checks),
        "duration_seconds": round(duration_seconds, 1),
    }
    summary.write_text(f"{json.dumps(document, indent=2)}\n", encoding="utf-8")
    return DemoResult(storms, stuck, checks, report, summary, duration_seconds)


def _described(options: DemoOptions, corpus: Corpus) -> dict[str, Any]:
    """What the storms were, for the summary."""
    return {
        "schema_version": SCHEMA_VERSION,
        "topics": corpus.manifest.topics,
        "namespaces": len(corpus.manifest.namespaces),
        "clients": options.clients,
        "answer_bytes": storm_size(options, corpus).answer_bytes,
        "read_rate_bytes_per_second": options.read_rate_bytes_per_second,
        "executor": options.executor,
    }
