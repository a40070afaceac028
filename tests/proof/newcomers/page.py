"""A page, followed step by step as it is written, in one shell."""

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.proof.result import ProofError
from tests.support.documentation import PYTHON, blocks, prints

PATIENCE_SECONDS = 600.0
_STEP = """{{
{command}
}} > {said} 2>&1 || exit
"""
"""In the shell itself: what a step sets and starts is there for the next ones."""


@dataclass(frozen=True)
class Step:
    """A command of a page, and what came of it.

    Attributes:
        command: As it is written.
        expected: What the page shows below it; None where it shows nothing.
        said: What it printed.
        done: False if it failed, or a step before it.
    """

    command: str
    expected: str | None
    said: str
    done: bool

    @property
    def as_written(self) -> bool:
        """True if it worked, and printed what the page shows."""
        return self.done and (self.expected is None or prints(self.expected, self.said))


def follow(page: Path, folder: Path, variables: Mapping[str, str], records: Path) -> Iterator[Step]:
    """Run all commands of a page in a folder; yield what came of each, up to one that failed.

    Raises:
        ProofError: They did not end.
    """
    found = list(_commands(page))
    said = [records / f"{number:02}.txt" for number in range(len(found))]
    script = "".join(
        _STEP.format(command=command, said=file)
        for (command, _), file in zip(found, said, strict=True)
    )
    code = _run(script, folder, variables)
    last = max((number for number, file in enumerate(said) if file.exists()), default=-1)
    for number, (command, expected) in enumerate(found[: last + 1]):
        printed = said[number].read_text(encoding="utf-8", errors="replace")
        yield Step(command, expected, printed, not code or number < last)


def _commands(page: Path) -> Iterator[tuple[str, str | None]]:
    for block in blocks(page):
        if block.language == PYTHON:
            continue
        expected = block.outputs or [None] * len(block.commands)
        yield from zip(block.commands, expected, strict=True)


def _run(script: str, folder: Path, variables: Mapping[str, str]) -> int:
    """Run a script in a shell; end all that it has left running."""
    with subprocess.Popen(
        ["bash", "-o", "pipefail", "-c", script],
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    ) as shell:
        try:
            return shell.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired as late:
            raise ProofError(f"the page was not done after {PATIENCE_SECONDS:.0f} s") from late
        finally:
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
