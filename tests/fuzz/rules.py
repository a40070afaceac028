"""The rules of every target: what breaks one is found, whatever the input was."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

BOUND_MILLIS = 20.0
"""The longest turn of the loop, in processor time."""


class BrokenRuleError(AssertionError):
    """An input broke a rule that holds for all of them; one sentence."""


class Turns:
    """The longest turn of the loop.

    The clock on the wall is quick to read, and tells too much on a busy machine, never too little.
    So an input with a turn that seems longer than all before is run again, with processor time.

    Attributes:
        longest_millis: Of all inputs: processor time, if it is more than a few milliseconds.
        of_this_input: Of the current one.
        clock: What turns are measured with.
    """

    def __init__(self) -> None:
        self.longest_millis = 0.0
        self.of_this_input = 0.0
        self.clock = time.perf_counter

    def begin(self) -> float:
        """Begin a turn; give what comes back to ``end``."""
        return self.clock()

    def end(self, begun: float) -> None:
        """End a turn."""
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
        """Measure a block as one turn."""
        begun = self.begin()
        try:
            yield
        finally:
            self.end(begun)


TURNS = Turns()


class LoggedErrors(logging.Handler):
    """Keeps the errors that a server logs as its own: there they end one peer, here they are found.

    An expected failure is logged as a sentence, without a stack.
    """

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[tuple[str, BaseException | None]] = []

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Hear what is logged within a block."""
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
        """Keep what a callback or task of the loop raised: an exception handler of a loop."""
        error = context.get("exception")
        known = error if isinstance(error, BaseException) else None
        self.found.append((str(context.get("message")), known))


ERRORS = LoggedErrors()
