"""Ways to run the parts of a corpus: in this process, in worker processes, or in Spark.

All run the same function for each part, so all write the same rows.
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
    """A function that runs ``work`` for each part, in any order, and returns all results."""

    def __call__(self, work: Callable[[int], list[ResultT]], parts: int) -> Iterable[ResultT]:
        """Run ``work(0)`` to ``work(parts - 1)``, and return their results together."""
        ...


def in_this_process(on_part_done: Callable[[int], None]) -> Executor:
    """Return an executor that runs one part after the other in this process."""

    def execute(work: Callable[[int], list[ResultT]], parts: int) -> Iterator[ResultT]:
        for part in range(parts):
            yield from work(part)
            on_part_done(part + 1)

    return execute


def in_processes(on_part_done: Callable[[int], None], processes: int | None = None) -> Executor:
    """Return an executor that runs parts in worker processes, one per processor."""

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
                "a process that worked on a part was killed: has the machine memory enough?"
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)

    return execute


def _with_variables(
    variables: Mapping[str, str], work: Callable[[int], list[ResultT]], part: int
) -> list[ResultT]:
    """Run a part with the environment variables of an object store, which this host lacks."""
    with patch.dict(os.environ, variables):
        return work(part)


def in_spark(session: SparkSession, on_part_done: Callable[[int], None]) -> Executor:
    """Return an executor that runs each part in a Spark task.

    The directory must be shared by all executors and this process: a store, or local Spark's.
    Tasks return a few numbers for each namespace, so an RDD carries them: ``mapInArrow`` would
    need pandas for the same (pyspark 4.3).
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
