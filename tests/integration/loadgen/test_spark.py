"""Tasks in a real Spark, and the ends of its session."""

import json
import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from loadgen.documents.model import Document
from loadgen.engine.rows import Outcome
from loadgen.engine.totals import Totals
from loadgen.errors import LoadgenError
from loadgen.places.experiment import experiment
from loadgen.places.options import RunOptions
from loadgen.spark.jobs import collect_with_progress
from loadgen.spark.session import SparkError
from tests.support.peers.stand_in_broker import StandInBroker, running, topic_names
from tests.support.runs.shared_spark import SharedSpark, environment

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


def starts(directory: Path) -> list[tuple[int, float]]:
    table = pq.read_table(directory / "requests", columns=["client", "due", "operation"])
    return sorted(
        (row["client"], round(row["due"], 6))
        for row in table.to_pylist()
        if row["operation"] == "list"
    )


def test_a_spark_stage_runs_the_same_schedule_as_worker_processes(
    shared_spark: SharedSpark, tmp_path: Path
) -> None:
    with running(StandInBroker(NAMES)) as url:
        options = RunOptions(tmp_path, service_url=url, tasks=2)
        there = experiment(STORM, replace(options, name="spark", spark=shared_spark.session()))
        here = experiment(STORM, replace(options, name="here"))
        with pytest.raises(LoadgenError, match="Spark has fewer slots"):
            experiment(STORM, replace(options, spark=shared_spark.session(), tasks=3))
    assert starts(there) == starts(here)
    assert len(starts(there)) == 6
    told = json.loads((there / "run.json").read_text())
    assert (told["place"], [each["clients"] for each in told["tasks"]]) == ("spark", [3, 3])
    assert [each["requests"] for each in told["tasks"]] == [3, 3]


@pytest.mark.usefixtures("ctrl_c")
def test_the_first_ctrl_c_ends_spark_tasks_and_keeps_their_rows(
    shared_spark: SharedSpark, tmp_path: Path
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
            tmp_path, service_url=url, spark=shared_spark.session(), on_progress=on_progress
        )
        directory = experiment(steady, options)
    assert json.loads((directory / "run.json").read_text())["interrupted"]
    outcomes = pq.read_table(directory / "requests")["outcome"].to_pylist()
    assert set(outcomes) == {"answered"}


def test_output_of_spark_is_written_to_spark_log(shared_spark: SharedSpark) -> None:
    process = shared_spark.session().sparkContext._gateway.proc
    outputs = [os.readlink(f"/proc/{process.pid}/fd/{descriptor}") for descriptor in (1, 2)]
    assert {os.path.basename(output) for output in outputs} == {"spark.log"}


def test_the_handler_of_ctrl_c_is_not_replaced_by_spark(shared_spark: SharedSpark) -> None:
    shared_spark.session()
    assert signal.getsignal(signal.SIGINT) is shared_spark.interrupt_handler


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_a_spark_action_without_output(shared_spark: SharedSpark, capfd) -> None:
    context, ended = shared_spark.session().sparkContext, threading.Event()

    def action() -> list[int]:
        try:
            slept: list[int] = context.parallelize([30], 1).map(time.sleep).collect()
            return slept
        finally:
            ended.set()

    with pytest.raises(KeyboardInterrupt):
        collect_with_progress(
            shared_spark.session(), action, lambda tasks_done: signal.raise_signal(signal.SIGINT)
        )
    assert capfd.readouterr() == ("", "")
    assert ended.wait(20)  # Before its task would end.


def test_a_failed_spark_task_raises_one_error_and_the_environment_is_restored(shared_spark) -> None:
    context = shared_spark.session().sparkContext
    process = context._gateway.proc
    with pytest.raises(Exception, match="ZeroDivisionError") as failed:
        context.parallelize([0], 1).map(lambda zero: 1 // zero).collect()
    # When the block is left by it
    with pytest.raises(SparkError) as told:
        shared_spark.end(failed.value)
    assert str(told.value).startswith("Spark failed: ZeroDivisionError: ")
    assert process.poll() is not None
    assert environment() == shared_spark.environment
    assert signal.getsignal(signal.SIGINT) is shared_spark.interrupt_handler
