"""Running a Spark action in a thread, with progress and cancellation by Ctrl-C."""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import InheritableThread
from pyspark.errors import PySparkException

from loadgen.spark.environment import interrupts_deferred, uninterrupted

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from pyspark.sql import SparkSession

_PROGRESS_POLL_SECONDS = 0.2
_CANCEL_SECONDS = 0.5


def collect_with_progress(
    session: SparkSession,
    rows: Callable[[], list[Any]],
    on_tasks_done: Callable[[int], None],
    on_interrupt: Callable[[], None] | None = None,
    interrupts: Callable[[], int] = lambda: 0,
) -> list[Any]:
    """Run a Spark action in a thread, and report the number of finished Spark tasks meanwhile.

    Args:
        session: The Spark session of the action.
        rows: The action and its preparation, for example ``frame.collect``.
        on_tasks_done: Called from this thread with the number of finished tasks.
        on_interrupt: Called at the first Ctrl-C, which then does not cancel the action: the action
            ends early.
        interrupts: Polled for the number of interrupts received by another thread; each counts as
            a Ctrl-C.

    Raises:
        PySparkException: The action failed.
        KeyboardInterrupt: A Ctrl-C cancelled the action.
    """
    outcome: Future[list[Any]] = Future()
    group = f"loadgen-{id(outcome)}"

    def act() -> None:
        try:
            session.sparkContext.setJobGroup(group, "loadgen")
            outcome.set_result(rows())
        except Exception as error:  # noqa: BLE001 - for the thread that waits, if it still does
            outcome.set_exception(error)

    thread = InheritableThread(target=act, daemon=True)
    try:
        with uninterrupted():
            thread.start()
        if on_interrupt is not None:
            _wait_for_interrupt(thread, on_interrupt, interrupts)
        while thread.is_alive():
            thread.join(_PROGRESS_POLL_SECONDS)
            if interrupts() > (on_interrupt is not None):
                raise KeyboardInterrupt  # noqa: TRY301 - as a Ctrl-C here
            with uninterrupted():
                tasks_done = _tasks_done(session, group)
            on_tasks_done(tasks_done)
    except KeyboardInterrupt:
        # The action is awaited until it notices the cancellation.
        with interrupts_deferred(), suppress(PySparkException, Py4JError):
            # Also a job not yet submitted by the action; PySpark has no such method.
            session.sparkContext._jsc.sc().cancelJobGroupAndFutureJobs(group)
            thread.join(_CANCEL_SECONDS)
        raise
    return outcome.result()


def _wait_for_interrupt(
    thread: threading.Thread, on_interrupt: Callable[[], None], interrupts: Callable[[], int]
) -> None:
    """Wait until a thread ends or the user interrupts; then call ``on_interrupt``."""
    with interrupts_deferred() as own:
        while thread.is_alive() and not own and not interrupts():
            thread.join(_PROGRESS_POLL_SECONDS)
    if own or interrupts():
        on_interrupt()


def _tasks_done(session: SparkSession, group: str) -> int:
    """Return the number of finished tasks in a Spark job group."""
    tracker = session.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
    return sum(stage.numCompletedTasks for stage in stages if stage)
