"""Runs tasks in a barrier stage of Spark: all at once or none, with a common start.

Traps of barrier stages, and what is done about each:

* ``allGather`` comes back up to a second apart in different tasks, so nobody starts on its
  return: it only carries clock readings, from which all tasks compute the same start.
* With fewer slots than tasks Spark waits long before it says so: the slots are counted first.
* A failed barrier stage is run again as a whole, which would offer the load twice: the session's
  settings allow one attempt (``loadgen.spark.session``), and a second one is refused here.
* Workers are forked from a process that lives on: everything heavy is imported in the task.

Tasks write their rows themselves; an RDD carries plans and facts, some kilobytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from loadgen.errors import LoadgenError
from loadgen.places.task import TaskFacts
from loadgen.spark.environment import uninterrupted
from loadgen.spark.jobs import collect_with_progress
from loadgen.spark.session import error_reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from loadgen.places.task import TaskPlan

LEAD_SECONDS = 2.0
"""Connecting is over before the clocks are compared, so this covers allGather alone."""


def run_in_spark(
    session: SparkSession, plans: Sequence[TaskPlan], end_early: Callable[[], None]
) -> list[TaskFacts]:
    """Run each plan as one task of a barrier stage.

    The first Ctrl-C calls ``end_early``, which asks the tasks to end.

    Raises:
        LoadgenError: The session has too few slots, or the stage failed.
    """
    tasks = len(plans)
    with uninterrupted():
        slots = session.sparkContext.defaultParallelism
    if slots < tasks:
        raise LoadgenError(
            f"{tasks} tasks have to run at the same moment and Spark has {slots} slots: "
            "use fewer --tasks or a --master with more cores"
        )

    def rows() -> list[str]:
        texts = [plan.model_dump_json(by_alias=True) for plan in plans]
        stage = session.sparkContext.parallelize(texts, tasks)
        told: list[str] = stage.barrier().mapPartitions(run_partition).collect()
        return told

    try:
        told = collect_with_progress(session, rows, lambda tasks_done: None, end_early)
    except (PySparkException, Py4JError) as error:
        raise LoadgenError(f"the run failed in Spark: {error_reason(str(error))}") from error
    return [TaskFacts.model_validate_json(each) for each in told]


def run_partition(plans: Iterator[str]) -> Iterator[str]:
    """Run the one plan of a partition in a Spark task and yield its facts."""
    # Drained before anything else: Spark feeds it from a thread of its own.
    for plan in list(plans):
        yield _run_barrier_task(plan)


def _run_barrier_task(plan_json: str) -> str:
    from pyspark import BarrierTaskContext

    from loadgen.places.processes import run_task
    from loadgen.places.task import TaskPlan

    context = BarrierTaskContext.get()
    if context.attemptNumber() > 0:
        raise LoadgenError("Spark started the run a second time; set spark.task.maxFailures=1")

    def agree(now_epoch_seconds: float) -> float:
        readings = context.allGather(repr(now_epoch_seconds))
        return max(float(reading) for reading in readings) + LEAD_SECONDS

    return run_task(TaskPlan.model_validate_json(plan_json), agree).model_dump_json()
