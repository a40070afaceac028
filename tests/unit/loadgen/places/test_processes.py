"""The driver hears of each worker's end when it comes."""

from __future__ import annotations

import os
from contextlib import ExitStack

import pytest

from loadgen.places.processes import as_they_come


class Worker:
    """A worker whose words come through a pipe."""

    def __init__(self, stack: ExitStack) -> None:
        reading, writing = os.pipe()
        self.output = stack.enter_context(os.fdopen(reading, "rb"))
        self._input = stack.enter_context(os.fdopen(writing, "wb"))

    def fileno(self) -> int:
        return self.output.fileno()

    def says(self, words: bytes) -> None:
        self._input.write(words)
        self._input.close()

    def answer(self) -> bytes:
        words = self.output.read()
        if not words:
            raise EOFError
        return words


def test_that_a_worker_died_is_known_while_those_before_it_still_run() -> None:
    with ExitStack() as stack:
        silent, dead = Worker(stack), Worker(stack)
        dead.says(b"")
        # When
        with pytest.raises(EOFError):
            as_they_come([silent, dead], Worker.answer)


def test_answers_stand_in_the_order_of_the_workers() -> None:
    with ExitStack() as stack:
        early, late = Worker(stack), Worker(stack)
        late.says(b"second")

        def read(worker: Worker) -> bytes:
            found = worker.answer()
            if worker is late:
                early.says(b"first")
            return found

        # When
        found = as_they_come([early, late], read)
    # Then
    assert found == [b"first", b"second"]
