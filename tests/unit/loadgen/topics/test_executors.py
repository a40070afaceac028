"""Executors do every part once."""

import os
import signal

import pytest

from loadgen.errors import LoadgenError, UsageError
from loadgen.topics import executors
from loadgen.topics.executors import in_processes, in_this_process


def square(part: int) -> list[int]:
    return [part * part]


def refused(part: int) -> list[int]:
    raise UsageError(f"part {part} is none")


def killed(part: int) -> list[int]:
    os.kill(os.getpid(), signal.SIGKILL)
    return [part]


def test_parts_in_this_process_run_in_order_and_report_progress() -> None:
    told: list[int] = []
    assert list(in_this_process(told.append)(square, 4)) == [0, 1, 4, 9]
    assert told == [1, 2, 3, 4]


def test_worker_processes_run_every_part_once_and_report_progress() -> None:
    told: list[int] = []
    assert sorted(in_processes(told.append, 2)(square, 4)) == [0, 1, 4, 9]
    assert told == [1, 2, 3, 4]


def test_a_usage_error_of_a_part_is_raised_unchanged() -> None:
    with pytest.raises(UsageError, match="part 0 is none"):
        list(in_processes(lambda done: None, 1)(refused, 1))


def test_a_killed_worker_process_is_reported() -> None:
    with pytest.raises(LoadgenError, match="was killed"):
        list(in_processes(lambda done: None, 1)(killed, 1))


def test_a_part_on_another_host_runs_with_the_variables_of_the_driver() -> None:
    def work(part: int) -> list[str]:
        return [f"{part} {os.environ['AWS_REGION']}"]

    assert executors._with_variables({"AWS_REGION": "north"}, work, 3) == ["3 north"]
    assert os.environ.get("AWS_REGION") != "north"
