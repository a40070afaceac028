"""Rules that hold for every target and input."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

BOUND_MILLIS = 20.0
"""Longest turn of the loop, in processor time."""


class BrokenRuleError(AssertionError):
    """An input broke a general rule; a sentence."""


class Turns:
    """Longest turn of the loop.

    Wall-clock time is cheap to read, but too high on a busy machine, never too low. So an input
    with a new longest turn is run again, with processor time.

    Attributes:
        longest_millis: Over all inputs: processor time, if above a few milliseconds.
        of_this_input: Of the current input.
        clock: Measures turns.
    """

    def __init__(self) -> None:
        self.longest_millis = 0.0
        self.of_this_input = 0.0
        self.clock = time.perf_counter

    def begin(self) -> float:
        """Begin a turn; ``end`` takes the returned value."""
        return self.clock()

    def end(self, begun: float) -> None:
        self.of_this_input = max(self.of_this_input, (self.clock() - begun) * 1000)

    @contextmanager
    def exactly(self) -> Iterator[None]:
        """Measure processor time within a block."""
        before, self.clock = self.clock, time.thread_time
        self.of_this_input = 0.0
        try:
            yield
        finally:
            self.clock = before

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Measure a block as a turn."""
        begun = self.begin()
        try:
            yield
        finally:
            self.end(begun)


TURNS = Turns()


class LoggedErrors(logging.Handler):
    """Keeps internal errors that a server logs: servers survive such errors, fuzzing reports them.

    An expected failure is logged as a sentence, without a stack.
    """

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[tuple[str, BaseException | None]] = []

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Collect log records within a block."""
        log = logging.getLogger()
        log.addHandler(self)
        try:
            yield
        finally:
            log.removeHandler(self)
            self.found.clear()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep an error that has a stack."""
        if record.exc_info:
            self.found.append((record.getMessage(), record.exc_info[1]))

    def unhandled(self, _: object, context: dict[str, object]) -> None:
        """Keep an exception of a callback or task: an exception handler of a loop."""
        error = context.get("exception")
        known = error if isinstance(error, BaseException) else None
        self.found.append((str(context.get("message")), known))


ERRORS = LoggedErrors()
