"""Tasks of a run in a barrier stage of Spark, which starts all of them at once or none.

Traps of barrier stages, and the remedies:

* Spark's ``allGather`` returns up to a second apart in different tasks: the start is agreed over
  the control channel.
* With fewer slots than tasks Spark retries for ten minutes before failing: the session's settings
  give executors half a minute to register.
* A repeated task would offer its load twice: the settings of a load's session allow one attempt,
  and in any session the control channel admits no task twice.
* After the loss of a task Spark ends the rest: the remaining tasks have time
  (``loadgen.spark.settings``) to write their rows and report their facts to the driver.
* Workers are forked from a process that lives on: all heavy imports happen in the task.

Tasks write their rows themselves; an RDD carries plans and facts, some kilobytes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from loadgen.errors import LoadgenError, UsageError
from loadgen.places.task import TaskFacts
from loadgen.spark.environment import uninterrupted
from loadgen.spark.jobs import collect_with_progress
from loadgen.spark.session import error_reason
from loadgen.spark.settings import is_local

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from loadgen.engine.control_server import ControlServer
    from loadgen.places.task import TaskPlan

_LARGEST_PORT = 65_535
CONTROL_PORT = "spark.loadgen.control.port"
"""Setting of Spark: the driver's port for tasks' reports; any free port by default."""
_TOO_FEW_SLOTS = "SPARK-24819"
"""Spark's own error: the executors present or registered in time have too few cores."""


def driver_address(session: SparkSession) -> tuple[str, int, str]:
    """Return the driver's host and port as executors reach them, and the address to listen on.

    Raises:
        UsageError: The port is invalid.
    """
    with uninterrupted():
        conf: dict[str, str] = dict(session.sparkContext.getConf().getAll())
    host, port = conf.get("spark.driver.host", "127.0.0.1"), conf.get(CONTROL_PORT, "0")
    if not port.isascii() or not port.isdecimal() or int(port) > _LARGEST_PORT:
        raise UsageError(f"{CONTROL_PORT} {port[:40]!r} is no port: 0 to {_LARGEST_PORT}")
    return host, int(port), conf.get("spark.driver.bindAddress", host)


def run_in_spark(
    session: SparkSession,
    plans: Sequence[TaskPlan],
    control: ControlServer,
    interrupts: Callable[[], int] = lambda: 0,
) -> tuple[list[TaskFacts], str]:
    """Run all tasks of a load in one barrier stage of Spark.

    The first Ctrl-C, or the first of ``interrupts``, requests the tasks to end.

    Returns:
        The facts of the tasks, and words on the lost tasks; empty if no task was lost.

    Raises:
        LoadgenError: The session has too few slots, or the stage failed.
    """
    tasks = len(plans)
    few = LoadgenError(
        f"{tasks} tasks have to run at the same moment and Spark has fewer slots: use fewer "
        "--tasks or a --master with more cores"
    )
    with uninterrupted():
        context = session.sparkContext
        # A local session has all slots from the start; a cluster's executors may still register.
        if is_local(context.master) and _slots(context) < tasks:
            raise few

    def rows() -> list[str]:
        texts = [plan.model_dump_json(by_alias=True) for plan in plans]
        stage = context.parallelize(texts, tasks)
        told: list[str] = stage.barrier().mapPartitions(run_partition).collect()
        return told

    try:
        told = collect_with_progress(
            session, rows, lambda tasks_done: None, control.stop, interrupts
        )
    except (PySparkException, Py4JError) as error:
        if _TOO_FEW_SLOTS in str(error):
            raise few from None
        failed = LoadgenError(f"the run failed in Spark: {_reason(str(error))}")
        failed.__cause__ = error
        facts, lost = control.rest(failed)
        return [TaskFacts.model_validate(each) for each in facts], lost
    return [TaskFacts.model_validate_json(each) for each in told], ""


def _slots(context: SparkContext) -> int:
    """Return the number of tasks that Spark can run in parallel.

    The setting spark.default.parallelism may have another value.
    """
    scheduler = context._jsc.sc()
    profile = scheduler.resourceProfileManager().defaultResourceProfile()
    return int(scheduler.maxNumConcurrentTasks(profile))


def _reason(text: str) -> str:
    """Return the reason why a Spark stage failed, without Spark's list of retries.

    If an executor was lost, the reason names only that.
    """
    gone = re.search(
        r"ExecutorLostFailure \(executor \S+ .*|Python worker exited unexpectedly.*", text
    )
    return gone[0] if gone else error_reason(text)


def run_partition(plans: Iterator[str]) -> Iterator[str]:
    """Run the single task plan in a Spark partition, and yield the task's facts as JSON."""
    # Drained before any work: Spark feeds the iterator from a thread of its own.
    for plan in list(plans):
        yield _run_task(plan)


def _run_task(plan_json: str) -> str:
    from loadgen.places.processes import run_task
    from loadgen.places.task import TaskPlan

    return run_task(TaskPlan.model_validate_json(plan_json)).model_dump_json()
