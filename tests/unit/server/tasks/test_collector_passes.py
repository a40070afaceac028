"""Full passes of the garbage collector look at what is new, until much more is there."""

from __future__ import annotations

import subprocess
import sys

import pytest

from server.tasks.collector_passes import LEAST_GROWTH, OLDEST, CollectorPasses

AT_START = 500_000
FROZEN, ALL = "what is there is left out", "all is taken in"


class Process:
    """A process whose pieces of memory are as many as a test says."""

    def __init__(self) -> None:
        self.blocks = AT_START
        self.said: list[str] = []
        self.passes = CollectorPasses(
            lambda: self.said.append(FROZEN), lambda: self.said.append(ALL), lambda: self.blocks
        )

    def full_pass(self, blocks: int) -> str:
        self.blocks = blocks
        self.passes("start", {"generation": OLDEST})
        self.passes("stop", {"generation": OLDEST})
        return self.said.pop()


@pytest.fixture
def process() -> Process:
    return Process()


def test_what_outlives_a_full_pass_is_left_out_of_the_next(process: Process) -> None:
    assert process.full_pass(AT_START + 10) == FROZEN
    assert process.full_pass(AT_START + LEAST_GROWTH) == FROZEN


def test_passes_over_the_new_alone_change_nothing(process: Process) -> None:
    for generation in range(OLDEST):
        process.passes("stop", {"generation": generation})
    assert process.said == []


def test_all_is_looked_at_once_much_more_is_there(process: Process) -> None:
    assert process.full_pass(AT_START + LEAST_GROWTH + 1) == ALL
    assert process.full_pass(AT_START) == FROZEN


def test_then_as_much_again_may_come(process: Process) -> None:
    # Given: of which nothing was garbage
    process.full_pass(3 * LEAST_GROWTH)
    process.full_pass(3 * LEAST_GROWTH)
    # Then
    assert process.full_pass(6 * LEAST_GROWTH) == FROZEN
    assert process.full_pass(6 * LEAST_GROWTH + 1) == ALL


_PROGRAM = """
import gc
from server.tasks import collector_passes
collector_passes.LEAST_GROWTH = 100_000
collector_passes.keep_passes_short()
kept = [[] for _ in range(300_000)]
print(gc.get_freeze_count() > 100_000)
for one in kept: one.append(one)
del kept, one
others = [[] for _ in range(600_000)]
print(gc.get_freeze_count() + len(gc.get_objects()) < 800_000)
"""


def test_cycles_among_what_was_left_out_are_freed_in_the_end() -> None:
    said = subprocess.run(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True
    ).stdout
    assert said.split() == ["True", "True"]
