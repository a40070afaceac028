"""A process of a benchmark or proof that executes commands one after the other.

A command is a line of JSON on the process's standard input, ``{"do": NAME, ...}``; its answer is a
line of JSON on standard output. The process exits when its input ends.
"""

from __future__ import annotations

import json
import select
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from benchmarks.processes import PATIENCE_SECONDS, ROOT, BenchError
from loadgen.places.server_process import log_tail

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

END_SECONDS = 60.0


class ControlledProcess:
    """A running process that is ready for commands.

    Attributes:
        ready: The first line that the process wrote, as a JSON object.
    """

    def __init__(self, process: subprocess.Popen[bytes], module: str, log: Path) -> None:
        self._process = process
        self._module = module
        self._log = log
        self.ready = self._answer(PATIENCE_SECONDS)

    def ask(self, command: str, seconds: float = PATIENCE_SECONDS, **what: Any) -> dict[str, Any]:  # noqa: ANN401
        """Send a command to the process, and return its answer.

        Raises:
            BenchError: The process ended, or did not answer in time.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": command, **what}).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._failure("has ended") from None
        return self._answer(seconds)

    def _answer(self, seconds: float) -> dict[str, Any]:
        output = self._process.stdout
        assert output is not None
        if not select.select([output], [], [], seconds)[0]:
            raise self._failure(f"did not answer in {seconds:g} s")
        line = output.readline()
        if not line:
            raise self._failure("ended")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _failure(self, what: str) -> BenchError:
        return BenchError(f"{self._module} {what}; the end of its log:\n{log_tail(self._log)}")


@contextmanager
def controlled_process(module: str, log: Path, *arguments: str) -> Iterator[ControlledProcess]:
    """Run a module that answers commands, for the length of a ``with`` block.

    Raises:
        BenchError: The process did not start.
    """
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=file,
            cwd=ROOT,
        )
    try:
        yield ControlledProcess(process, module, log)
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process by closing its input; kill it if it does not exit in time."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.close()
        process.wait(END_SECONDS)
    except (BrokenPipeError, subprocess.TimeoutExpired):
        pass
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        process.stdout.close()
