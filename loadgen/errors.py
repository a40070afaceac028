"""How loadgen ends when it does not succeed: one sentence for the user and an exit code.

The codes follow k6 where it has one (99), so that a pipeline can tell a broken limit from a
broken measurement.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What the exit code of ``loadgen`` says."""

    PASSED = 0
    INTERNAL = 1
    USAGE = 2
    CORRECTNESS = 97
    """An answer was wrong: a topic count or a topics hash differs."""
    GENERATOR_LIMITED = 98
    """The generator, not the server, was the limit: the figures are not valid."""
    THRESHOLDS = 99
    INTERRUPTED = 130


class LoadgenError(Exception):
    """An expected failure; ``str()`` of it is the whole message for the user.

    Args:
        sentence: What was wrong, with which value, and the remedy.
        exit_code: What the process exits with.
    """

    def __init__(self, sentence: str, exit_code: ExitCode = ExitCode.INTERNAL) -> None:
        # Both go to the base class: an exception crosses process borders by its ``args``.
        super().__init__(sentence, exit_code)
        self.sentence = sentence
        self.exit_code = exit_code

    def __str__(self) -> str:
        return self.sentence


class UsageError(LoadgenError):
    """What the user asked for cannot be done as asked."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence, ExitCode.USAGE)
        self.args = (sentence,)
