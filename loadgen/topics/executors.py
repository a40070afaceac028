"""Executors that run the parts of a corpus job: here, in worker processes, or in Spark.

All of them run the same function for each part, so all of them write the same rows.
"""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import get_context
from typing import TYPE_CHECKING, Protocol, TypeVar
from unittest.mock import patch

from loadgen.errors import LoadgenError
from loadgen.stored import store_variables
from loadgen.workers import follow_driver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pyspark.sql import SparkSession

ResultT = TypeVar("ResultT")


class Executor(Protocol):
    """An interface (typing Protocol) of functions that run ``work`` for each part of a job.

    The parts run in any order.
    """

    def __call__(self, work: Callable[[int], list[ResultT]], parts: int) -> Iterable[ResultT]:
        """Run ``work(0)`` to ``work(parts - 1)``; return the items of all their results."""
        ...


def in_this_process(on_part_done: Callable[[int], None]) -> Executor:
    """Return an executor that runs the parts of a job one after the other in this process."""

    def execute(work: Callable[[int], list[ResultT]], parts: int) -> Iterator[ResultT]:
        for part in range(parts):
            yield from work(part)
            on_part_done(part + 1)

    return execute


def in_processes(on_part_done: Callable[[int], None], processes: int | None = None) -> Executor:
    """Return an executor that runs the parts of a job in worker processes, one per processor."""

    def execute(work: Callable[[int], list[ResultT]], parts: int) -> Iterator[ResultT]:
        workers = min(parts, processes or os.cpu_count() or 1)
        # Spawned: a fork would copy locks held by this process's threads.
        pool = ProcessPoolExecutor(workers, get_context("spawn"), initializer=follow_driver)
        try:
            futures = [pool.submit(work, part) for part in range(parts)]
            for done, future in enumerate(as_completed(futures), start=1):
                yield from future.result()
                on_part_done(done)
        except BrokenProcessPool:
            raise LoadgenError(
                "a worker process was killed: does this machine have enough memory?"
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)

    return execute


def _with_variables(
    variables: Mapping[str, str], work: Callable[[int], list[ResultT]], part: int
) -> list[ResultT]:
    """Run a part of a job with an object store's environment variables, which this host lacks."""
    with patch.dict(os.environ, variables):
        return work(part)


def in_spark(session: SparkSession, on_part_done: Callable[[int], None]) -> Executor:
    """Return an executor that runs each part of a job in a Spark task.

    All executors and this process must share the directory, which is in a store unless Spark is
    local. Tasks return only a few numbers for each namespace, so an RDD carries them:
    ``mapInArrow`` would need pandas for that (pyspark 4.3).
    """
    from loadgen.spark.jobs import collect_with_progress

    def execute(work: Callable[[int], list[ResultT]], parts: int) -> Iterable[ResultT]:
        carried = partial(_with_variables, store_variables(), work)

        def rows() -> list[ResultT]:
            tasks = session.sparkContext.parallelize(range(parts), parts)
            done: list[ResultT] = tasks.flatMap(carried).collect()
            return done

        return collect_with_progress(session, rows, on_part_done)

    return execute
