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


def test_parts_are_done_here_in_their_order() -> None:
    told: list[int] = []
    assert list(in_this_process(told.append)(square, 4)) == [0, 1, 4, 9]
    assert told == [1, 2, 3, 4]


def test_processes_beside_do_every_part_and_tell_how_many() -> None:
    told: list[int] = []
    assert sorted(in_processes(told.append, 2)(square, 4)) == [0, 1, 4, 9]
    assert told == [1, 2, 3, 4]


def test_what_a_part_cannot_do_is_told_as_it_was_said() -> None:
    with pytest.raises(UsageError, match="part 0 is none"):
        list(in_processes(lambda done: None, 1)(refused, 1))


def test_a_process_that_is_killed_is_one_sentence() -> None:
    with pytest.raises(LoadgenError, match="was killed"):
        list(in_processes(lambda done: None, 1)(killed, 1))


def test_a_part_on_another_host_is_done_with_the_variables_of_the_driver() -> None:
    def work(part: int) -> list[str]:
        return [f"{part} {os.environ['AWS_REGION']}"]

    assert executors._with_variables({"AWS_REGION": "north"}, work, 3) == ["3 north"]
    assert os.environ.get("AWS_REGION") != "north"
