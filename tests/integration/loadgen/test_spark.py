"""Everything that needs a real Spark, in one file: a start takes seconds, so tests share it."""

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from loadgen.documents.model import Document
from loadgen.engine.rows import Outcome
from loadgen.engine.totals import Totals
from loadgen.errors import LoadgenError
from loadgen.places.experiment import experiment
from loadgen.places.options import RunOptions
from loadgen.spark.jobs import collect_with_progress
from loadgen.spark.session import SparkError, SparkSettings, spark_session
from tests.support.peers.stand_in_broker import StandInBroker, running, topic_names
from tests.support.runs.short_spark import SHORT_LIVED

pytestmark = pytest.mark.spark

NAMES = {f"load/ns-{index}": topic_names(f"load/ns-{index}", 100, 100) for index in range(3)}
HEAD = {"name": "storm", "topics": {"of": list(NAMES)}}
ARRIVE = {"kind": "poisson", "rate": "20/s"}
STORM = Document.model_validate(
    {
        **HEAD,
        "clients": [
            {"name": "all", "do": "list", "count": 4, "arrive": ARRIVE},
            {"name": "go", "do": "discover", "library": "go", "count": 2, "arrive": ARRIVE},
        ],
    }
)
# A short-lived JVM gains nothing from second compilation or a parallel collector: both took half of
# its time.


def environment() -> dict[str, str]:
    """The environment without pytest's own per-test variables."""
    return {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}


class SharedSpark:
    """A session for this file's tests, restarted if a test has ended it."""

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
        """Leave the session's block, by ``error`` if given."""
        block, self._block, self._session = self._block, ExitStack(), None
        block.__exit__(type(error) if error else None, error, None)


@pytest.fixture(scope="module")
def spark() -> Iterator[SharedSpark]:
    shared = SharedSpark()
    yield shared
    shared.end()


def starts(directory: Path) -> list[tuple[int, float]]:
    table = pq.read_table(directory / "requests", columns=["client", "due", "operation"])
    return sorted(
        (row["client"], round(row["due"], 6))
        for row in table.to_pylist()
        if row["operation"] == "list"
    )


def test_a_barrier_stage_runs_the_schedule_of_worker_processes_and_writes_the_same_tables(
    spark: SharedSpark, tmp_path: Path
) -> None:
    with running(StandInBroker(NAMES)) as url:
        options = RunOptions(tmp_path, service_url=url, tasks=2)
        there = experiment(STORM, replace(options, name="spark", spark=spark.session()))
        here = experiment(STORM, replace(options, name="here"))
        with pytest.raises(LoadgenError, match="Spark has fewer slots"):
            experiment(STORM, replace(options, spark=spark.session(), tasks=3))
    assert starts(there) == starts(here)
    assert len(starts(there)) == 6
    told = json.loads((there / "run.json").read_text())
    assert (told["place"], [each["clients"] for each in told["tasks"]]) == ("spark", [3, 3])
    assert [each["requests"] for each in told["tasks"]] == [3, 3]


@pytest.mark.usefixtures("ctrl_c")
def test_the_first_ctrl_c_lets_the_tasks_of_a_stage_end_with_what_they_have(
    spark: SharedSpark, tmp_path: Path
) -> None:
    # Given clients that go on for an hour, and a Ctrl-C once some were answered
    group = {"name": "steady", "do": "list", "count": 2, "every": "100ms"}
    steady = STORM.model_validate(
        {**HEAD, "clients": [group], "phases": {"measure": "1h", "drain": 1}}
    )
    interrupted = threading.Event()

    def on_progress(totals: Totals) -> None:
        if totals.of(Outcome.ANSWERED) and not interrupted.is_set():
            interrupted.set()
            os.kill(os.getpid(), signal.SIGINT)

    with running(StandInBroker(NAMES)) as url:
        options = RunOptions(
            tmp_path, service_url=url, spark=spark.session(), on_progress=on_progress
        )
        directory = experiment(steady, options)
    assert json.loads((directory / "run.json").read_text())["interrupted"]
    outcomes = pq.read_table(directory / "requests")["outcome"].to_pylist()
    assert set(outcomes) == {"answered"}


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
    context, ended = spark.session().sparkContext, threading.Event()

    def action() -> list[int]:
        try:
            slept: list[int] = context.parallelize([30], 1).map(time.sleep).collect()
            return slept
        finally:
            ended.set()

    with pytest.raises(KeyboardInterrupt):
        collect_with_progress(
            spark.session(), action, lambda tasks_done: signal.raise_signal(signal.SIGINT)
        )
    assert capfd.readouterr() == ("", "")
    assert ended.wait(20)  # Before its task would end.


def test_a_failed_task_is_one_sentence_and_everything_is_put_back(spark: SharedSpark) -> None:
    context = spark.session().sparkContext
    process = context._gateway.proc
    with pytest.raises(Exception, match="ZeroDivisionError") as failed:
        context.parallelize([0], 1).map(lambda zero: 1 // zero).collect()
    # When the block is left by it
    with pytest.raises(SparkError) as told:
        spark.end(failed.value)
    assert str(told.value).startswith("Spark failed: ZeroDivisionError: ")
    assert process.poll() is not None
    assert environment() == spark.environment
    assert signal.getsignal(signal.SIGINT) is spark.interrupt_handler
