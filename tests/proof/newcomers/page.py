"""A page, followed literally step by step, in one shell."""

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
"""In the shell itself: variables and processes of a step remain for the next."""


@dataclass(frozen=True)
class Step:
    """A command of a page and its result.

    Attributes:
        command: As written.
        expected: The output shown by the page; None if absent.
        said: The actual output.
        done: False if the step, or an earlier step, failed.
    """

    command: str
    expected: str | None
    said: str
    done: bool

    @property
    def as_written(self) -> bool:
        """True if the command succeeded with the page's output."""
        return self.done and (self.expected is None or prints(self.expected, self.said))


def follow(page: Path, folder: Path, variables: Mapping[str, str], records: Path) -> Iterator[Step]:
    """Run a page's commands in a folder; yield each result, up to the first failure.

    Raises:
        ProofError: The commands did not end.
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
    """Run a script in a shell; end all its remaining processes."""
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
