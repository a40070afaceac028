"""The driver learns of each worker's end."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from loadgen.documents.reading import parse_document
from loadgen.engine.control_server import ControlServer
from loadgen.errors import LoadgenError, UsageError
from loadgen.places.processes import as_they_come, run_in_processes, run_task
from loadgen.places.task import TaskPlan
from loadgen.plan.clients import Namespace


class Ended:
    """A finished process."""

    exitcode = -9

    def __init__(self, name: str) -> None:
        self.name = name

    def join(self) -> None:
        """No-op."""


def two_workers() -> tuple[dict[Connection, Ended], Connection, Connection]:
    (ours, early), (also_ours, late) = Pipe(), Pipe()
    return {ours: Ended("worker process 0"), also_ours: Ended("worker process 1")}, early, late


def test_the_death_of_a_worker_is_reported_while_other_workers_still_run() -> None:
    workers, _silent, dead = two_workers()
    dead.close()
    with pytest.raises(LoadgenError, match="worker process 1 ended without a report: exit code -9"):
        as_they_come(workers)


def test_a_host_without_the_drivers_directory_is_refused_before_any_load(tmp_path: Path) -> None:
    document = parse_document("clients: [{name: g, do: list, count: 1}]")
    plan = TaskPlan.share(document, [Namespace(name="t/n")], directory=str(tmp_path / "none"))
    with pytest.raises(LoadgenError, match=r"none of the driver is not there on .*: name an --out"):
        run_task(plan)


def test_a_usage_error_of_a_worker_is_raised_unchanged() -> None:
    workers, _silent, refusing = two_workers()
    refusing.send(UsageError("wrong"))
    with pytest.raises(UsageError, match="wrong"):
        as_they_come(workers)


def test_results_are_returned_in_the_order_of_the_workers() -> None:
    workers, early, late = two_workers()
    late.send("second")
    answers = threading.Timer(0.02, early.send, ["first"])
    answers.start()
    found = as_they_come(workers)
    answers.join()
    assert found == ["first", "second"]


def test_a_worker_that_dies_before_the_start_is_reported_by_name(monkeypatch) -> None:
    @contextmanager
    def worker(plan: str) -> Iterator[tuple[Connection, Ended]]:
        ours, theirs = Pipe()
        theirs.close()
        yield ours, Ended(plan)

    monkeypatch.setattr("loadgen.places.processes._worker", worker)
    with pytest.raises(LoadgenError, match="worker process 0 ended without a report"):
        run_in_processes(
            ["worker process 0"],  # type: ignore[list-item]
            ControlServer(1, lambda _: None),
        )
