"""The demo: a million topics, then the same restart storm three times with fresh servers.

Each run starts a broker and a proxy as new processes, so that no memory of an earlier run counts.
One Spark session makes the topics and drives all storms. The second part, one client that reads
nothing, follows in :mod:`loadgen.demo.stuck`. With an operator's own topics or configuration the
same storms are a rehearsal of that cluster, without the second part.
"""

from __future__ import annotations

import shutil
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from loadgen.clients.connect import raise_open_file_limit
from loadgen.topics.corpus import write_corpus
from loadgen.topics.executors import in_spark, in_this_process
from loadgen.topics.reading import OwnTopics
from loadgen.topics.plan import TopicPlan
from loadgen.demo.advice import advice_for
from loadgen.demo.plan import (
    CLIENT_TIMEOUT_SECONDS,
    RUNS,
    SOCKET_BUFFER_BYTES,
    DemoRun,
    broker_settings,
    proxy_settings,
    run_settings,
)
from loadgen.demo.result import REPORT_NAME, SUMMARY_NAME, DemoParts, DemoResult, conclude
from loadgen.demo.returning import run_returning_storm
from loadgen.demo.stuck import run_stuck_part
from loadgen.demo.topics import DemoTopics, topics_of_corpus, topics_of_operator
from loadgen.errors import LoadgenError
from loadgen.own_servers.local import local_broker, local_proxy
from loadgen.report.pictures import RUN_DIRECTORIES
from loadgen.run.options import RunOptions
from loadgen.run.run import execute
from loadgen.scenarios.storm.scenario import StormScenario
from loadgen.places.server_process import ServerLaunch, running_server
from loadgen.units import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from loadgen.clients.records import RequestCounters
    from loadgen.topics.corpus import Corpus
    from loadgen.demo.plan import DemoRun
    from loadgen.demo.result import DemoOptions
    from loadgen.demo.topics import DemoTopics
    from loadgen.live.steps import StepDisplay
    from loadgen.places.operator_files import OwnCluster
    from loadgen.places.server_process import ServerProcess


_CORPUS_FILES = 8
# The proxy has a connection to the broker for each client's, in profile pulsar.
_CONNECTIONS_PER_CLIENT = 2


def run_demo(options: DemoOptions, steps: StepDisplay) -> DemoResult:
    """Make the topics, run the three storms and the second part, judge, write what was found.

    Raises:
        LoadgenError: A server did not start, or a storm could not be run.
    """
    _prepare(options)
    try:
        with _session(options, steps) as session:
            topics = _topics(options, session, steps)
            documents = {run.name: _run_storm(run, topics, options, session, steps) for run in RUNS}
        stuck = {}
        if options.own is None:
            stuck = run_stuck_part(options.out, _stuck_directory(options), steps, _storm_notes)
        returning = advice = None
        if isinstance(options.topics, TopicPlan) and options.own is None:
            rate = options.read_rate_bytes_per_second
            what = f"Simulated: {plural(options.clients, 'consumer')} that retry"
            with steps.step(what):
                names = [each.name for each in topics.namespaces]
                returning = run_returning_storm(
                    options.out, options.topics, names, options.clients, rate
                )
            with steps.step("Computing the limits under which all recover"):
                advice = advice_for(topics, options.clients, rate)
    finally:
        if not options.keep:
            shutil.rmtree(_corpus_directory(options), ignore_errors=True)
            shutil.rmtree(_stuck_directory(options), ignore_errors=True)
    with steps.step("Writing the report"):
        parts = DemoParts(documents, stuck, returning, advice)
        return conclude(options, topics, parts, steps)


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
def _session(options: DemoOptions, steps: StepDisplay) -> Iterator[SparkSession | None]:
    """Hold one Spark session for the whole demo; None where processes do its work."""
    if options.executor != "spark":
        yield None
        return
    # Spark is imported only where it is asked for: it takes a second.
    from loadgen.spark.session import SparkSettings, spark_session

    with ExitStack() as stack:
        with steps.step("Starting Spark"):
            settings = SparkSettings("loadgen demo", cores=options.tasks)
            session = stack.enter_context(spark_session(settings))
        yield session


def _corpus_directory(options: DemoOptions) -> Path:
    return options.out / "topics"


def _stuck_directory(options: DemoOptions) -> Path:
    return options.out / "stuck-topics"


def _topics(options: DemoOptions, session: SparkSession | None, steps: StepDisplay) -> DemoTopics:
    if isinstance(options.topics, OwnTopics):
        return topics_of_operator(options.topics, options.namespaces)
    return topics_of_corpus(_make_topics(options.topics, options, session, steps))


def _make_topics(
    plan: TopicPlan, options: DemoOptions, session: SparkSession | None, steps: StepDisplay
) -> Corpus:
    what = f"Making {plan.topics:,} topics in {plural(plan.namespaces, 'namespace')}"
    with steps.step(f"{what} with Spark" if session else what) as note:

        def on_part_done(done: int) -> None:
            note(f"{done} of {min(_CORPUS_FILES, plan.namespaces)} files")

        executor = in_spark(session, on_part_done) if session else in_this_process(on_part_done)
        return write_corpus(plan, _corpus_directory(options), _CORPUS_FILES, executor)


def _run_storm(
    run: DemoRun,
    topics: DemoTopics,
    options: DemoOptions,
    session: SparkSession | None,
    steps: StepDisplay,
) -> dict[str, Any]:
    """Run one storm with fresh servers and return its summary as written.

    Raises:
        KeyboardInterrupt: It was interrupted: what it found is half a run.
    """
    with _servers(run, topics, options, steps) as (broker, proxy):
        what = f"{run.label}: {plural(options.clients, 'client')} list topics"
        with steps.step(what) as note:
            result = execute(
                _scenario((proxy or broker).service_url, topics, options),
                RunOptions(
                    name=run.name,
                    label=run.label,
                    out=options.out / RUN_DIRECTORIES,
                    executor=options.executor,
                    tasks=min(options.tasks, options.clients),
                    spark=session,
                    broker_admin_url=broker.web_url,
                    proxy_admin_url=proxy.web_url if proxy else None,
                    broker_pid=broker.pid,
                    proxy_pid=proxy.pid if proxy else None,
                    on_progress=_storm_notes(note),
                ),
            )
            if result.interrupted:
                raise KeyboardInterrupt
            return result.summary


@contextmanager
def _servers(
    run: DemoRun, topics: DemoTopics, options: DemoOptions, steps: StepDisplay
) -> Iterator[tuple[ServerProcess, ServerProcess | None]]:
    """Broker and proxy of one run; the proxy stops first, so that it never misses its broker."""
    logs = options.out / RUN_DIRECTORIES / run.name
    with ExitStack() as stack:
        with steps.step(f"{run.label}: starting servers"):
            launch = broker_launch(run, options.own, logs, topics)
            broker = stack.enter_context(running_server(launch))
            launch_of_proxy = proxy_launch(run, options.own, logs, broker)
            proxy = None
            if launch_of_proxy is not None:
                proxy = stack.enter_context(running_server(launch_of_proxy))
        yield broker, proxy


def _scenario(service_url: str, topics: DemoTopics, options: DemoOptions) -> StormScenario:
    rate = options.read_rate_bytes_per_second
    reading_seconds = topics.answer_bytes / rate if rate else 0.0
    return StormScenario(
        service_url=service_url,
        namespaces=topics.namespaces,
        clients=options.clients,
        read_rate_bytes_per_second=rate,
        receive_buffer_bytes=SOCKET_BUFFER_BYTES,
        timeout_seconds=CLIENT_TIMEOUT_SECONDS + reading_seconds,
    )


def _storm_notes(note: Callable[[str], None]) -> Callable[[RequestCounters], None]:
    def show(counters: RequestCounters) -> None:
        words = f"{counters.answered:,} answered, {counters.refused:,} refused"
        failed = counters.wrong + counters.timeout + counters.disconnected + counters.unreachable
        note(f"{words}, {failed:,} failed" if failed else words)

    return show


def broker_launch(
    run: DemoRun, own: OwnCluster | None, logs: Path, topics: DemoTopics
) -> ServerLaunch:
    """Return how to start the broker of a run; it imports the topics before it is ready."""
    importing, log = topics.import_arguments, logs / "broker.log"
    if own is None:
        return ServerLaunch("broker", broker_settings(run), log, importing)
    settings = own.broker.settings(run_settings(run), local_broker(), limited=run.limit_mb > 0)
    return ServerLaunch("broker", settings, log, (*own.broker.arguments, *importing))


def proxy_launch(
    run: DemoRun, own: OwnCluster | None, logs: Path, broker: ServerProcess
) -> ServerLaunch | None:
    """Return how to start the proxy of a run; None where an operator has none."""
    log = logs / "proxy.log"
    if own is None:
        return ServerLaunch("proxy", proxy_settings(run, broker), log)
    if own.proxy is None:
        return None
    settings = own.proxy.settings(
        run_settings(run),
        local_proxy(broker.service_url, broker.web_url),
        limited=run.limit_mb > 0,
    )
    return ServerLaunch("proxy", settings, log, own.proxy.arguments)
