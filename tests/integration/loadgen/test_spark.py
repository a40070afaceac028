"""Everything that needs a real Spark, in one file: it takes seconds to start, so all share one."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from loadgen.commands.spark.sql import ask
from loadgen.errors import ExitCode, LoadgenError, UsageError
from loadgen.run.options import RunOptions
from loadgen.run.run import execute
from loadgen.scenario import NamespaceExpectation
from loadgen.scenarios.storm.scenario import StormScenario
from loadgen.spark.jobs import collect_with_progress
from loadgen.spark.session import SparkError, SparkSettings, spark_session
from loadgen.sql.queries import QUERIES
from loadgen.sql.tables import register_tables
from proto.topic_hash import topics_hash
from tests.support.peers.stand_in_broker import StandInBroker, running, topic_names

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from loadgen.clients.records import RequestCounters

pytestmark = pytest.mark.spark

NAMES = {f"load/ns-{index}": topic_names(f"load/ns-{index}", 100, 100) for index in range(3)}
# A JVM that ends after seconds gains nothing by code that is compiled twice, nor by a collector
# that works beside it: both took half of its time.
SHORT_LIVED = (("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"),)


def environment() -> dict[str, str]:
    """The environment without what pytest itself sets for each test."""
    return {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}


class SharedSpark:
    """One session for all tests of this file; started again if a test has ended it."""

    def __init__(self) -> None:
        self.environment = environment()
        self.interrupt_handler = signal.getsignal(signal.SIGINT)
        self._block = ExitStack()
        self._session: Any = None

    def session(self) -> Any:
        if self._session is None:
            settings = SparkSettings("test", cores=2, conf=SHORT_LIVED)
            self._session = self._block.enter_context(spark_session(settings))
        return self._session

    def end(self, error: BaseException | None = None) -> None:
        """Leave the session's block, by ``error`` if there is one."""
        block, self._block, self._session = self._block, ExitStack(), None
        block.__exit__(type(error) if error else None, error, None)


@pytest.fixture(scope="module")
def spark() -> Iterator[SharedSpark]:
    shared = SharedSpark()
    yield shared
    shared.end()


def test_a_barrier_stage_runs_the_storm_of_the_worker_processes(
    spark: SharedSpark, tmp_path: Path
) -> None:
    # Given
    expected = tuple(
        NamespaceExpectation(name=name, topics=len(names), hash=topics_hash(names))
        for name, names in NAMES.items()
    )
    with running(StandInBroker(NAMES)) as url:
        scenario = StormScenario(
            service_url=url, namespaces=expected, clients=6, timeout_seconds=30
        )
        options = RunOptions("storm", out=tmp_path, executor="spark", spark=spark.session())
        # When
        result = execute(scenario, options)
        # Then more tasks than slots are refused at once, not after Spark's ten minutes
        with pytest.raises(LoadgenError, match="3 tasks have to run at the same moment"):
            execute(scenario, replace(options, tasks=3))
    assert result.summary["answered"] == 6
    tasks = json.loads((result.directory / "run.json").read_text())["tasks"]
    assert [(task["clients"], task["attempt"]) for task in tasks] == [(3, 0), (3, 0)]
    assert len({task["t0_epoch_seconds"] for task in tasks}) == 1


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C as Python starts with it; a run in a shell's background has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_the_first_ctrl_c_lets_the_tasks_of_a_stage_report(
    spark: SharedSpark, tmp_path: Path
) -> None:
    # Given clients that start over a long time
    def interrupt(counters: RequestCounters) -> None:
        if counters.answered >= 2 and not interrupted:
            interrupted.append(counters)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    interrupted: list[RequestCounters] = []
    unknown = tuple(NamespaceExpectation(name=name) for name in NAMES)
    with running(StandInBroker(NAMES)) as url:
        scenario = StormScenario(
            service_url=url, namespaces=unknown, clients=400, spread_seconds=400
        )
        options = RunOptions(
            "half", out=tmp_path, executor="spark", spark=spark.session(), on_progress=interrupt
        )
        # When
        result = execute(scenario, options)
    # Then
    assert result.exit_code is ExitCode.INTERRUPTED
    assert interrupted[0].answered <= result.summary["answered"] < 400
    assert result.summary["disconnected"] == result.summary["unreachable"] == 0


def test_percentiles_of_spark_sql_are_those_of_the_report(
    spark: SharedSpark, tmp_path: Path
) -> None:
    # Given
    expected = tuple(NamespaceExpectation(name=name) for name in NAMES)
    with running(StandInBroker(NAMES)) as url:
        scenario = StormScenario(
            service_url=url, namespaces=expected, clients=40, spread_seconds=0.2
        )
        result = execute(scenario, RunOptions("run", out=tmp_path, executor="process", tasks=1))
    # When
    columns, answers = ask(spark.session(), [result.directory], QUERIES["by-outcome"].sql)
    # Then
    (answer,) = (dict(zip(columns, each, strict=True)) for each in answers)
    assert (answer["run"], answer["outcome"], answer["requests"]) == ("run", "answered", 40)
    of_report = result.summary["latency_seconds"]
    for name in ("p50", "p90", "p99", "p999", "max"):
        assert answer[name] == pytest.approx(of_report[name], abs=1e-6)


def test_every_named_query_can_be_asked_of_a_run_that_left_little(
    spark: SharedSpark, tmp_path: Path
) -> None:
    # Given a run without clients, servers and most of its figures, and an odd name
    directory = tmp_path / "on-local[1] {x}*"
    directory.mkdir()
    requests = pa.table({"client": pa.array([1], pa.int32()), "namespace": ["a/b"]})
    pq.write_table(requests, directory / "requests.parquet")
    (directory / "summary.json").write_text('{"schema_version": 1, "answered": 1}')
    # When
    register_tables(spark.session(), [directory])
    # Then
    assert all(spark.session().sql(query.sql).columns for query in QUERIES.values())


def test_what_is_no_sql_is_one_sentence(spark: SharedSpark, tmp_path: Path) -> None:
    (tmp_path / "summary.json").write_text('{"schema_version": 1}')
    with pytest.raises(UsageError, match=r"TABLE_OR_VIEW_NOT_FOUND.*\(tables: requests, clients"):
        ask(spark.session(), [tmp_path], "SELECT * FROM nothing")


def test_what_spark_prints_goes_into_its_own_log(spark: SharedSpark) -> None:
    process = spark.session().sparkContext._gateway.proc
    outputs = [os.readlink(f"/proc/{process.pid}/fd/{descriptor}") for descriptor in (1, 2)]
    assert {os.path.basename(output) for output in outputs} == {"spark.log"}


def test_the_handler_of_ctrl_c_is_not_sparks(spark: SharedSpark) -> None:
    spark.session()
    assert signal.getsignal(signal.SIGINT) is spark.interrupt_handler


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_an_action_without_a_word(
    spark: SharedSpark, capfd: pytest.CaptureFixture[str]
) -> None:
    # Given an action that takes longer than anybody waits
    context = spark.session().sparkContext

    def action() -> list[int]:
        slept: list[int] = context.parallelize([30], 1).map(time.sleep).collect()
        return slept

    # When there is a Ctrl-C
    with pytest.raises(KeyboardInterrupt):
        collect_with_progress(
            spark.session(), action, lambda tasks_done: signal.raise_signal(signal.SIGINT)
        )
    # Then
    assert capfd.readouterr() == ("", "")
    assert not context.statusTracker().getActiveJobsIds()


def test_a_failed_task_is_one_sentence_and_everything_is_put_back(spark: SharedSpark) -> None:
    # Given
    context = spark.session().sparkContext
    process = context._gateway.proc
    with pytest.raises(Exception, match="ZeroDivisionError") as failed:
        context.parallelize([0], 1).map(lambda zero: 1 // zero).collect()
    # When the block is left by it
    with pytest.raises(SparkError) as told:
        spark.end(failed.value)
    # Then
    assert str(told.value).startswith("Spark failed: ZeroDivisionError: ")
    assert process.poll() is not None
    assert environment() == spark.environment
    assert signal.getsignal(signal.SIGINT) is spark.interrupt_handler
