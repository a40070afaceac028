"""Official clients' programs: each a process that answers lines of its input with lines of JSON."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.processes import ROOT
from tests.official.clients import ClientMissingError, go_client, java_client
from tests.proof.result import ProofError

LANGUAGES = ("python", "java", "go")


def official_command(language: str, python: str, java: str, go: str) -> Sequence[str]:
    """Return the command of an official client's program: a module, a class, a folder's name.

    Raises:
        ProofError: The program is not available.
    """
    try:
        if language == "java":
            return (*java_client().command[:-1], java)
        if language == "go":
            return (str(Path(go_client().command[0]).with_name(go)),)
    except ClientMissingError as error:
        raise ProofError(str(error)) from None
    return (sys.executable, "-m", python)


class Program:
    def __init__(self, name: str, process: subprocess.Popen[str]) -> None:
        self._name, self._process = name, process

    def say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def line(self) -> Any:
        """Return the next line of its output.

        Raises:
            ProofError: The program ended.
        """
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise ProofError(f"the program {self._name} ended; see {self._name}.err")
        return json.loads(line)


@contextmanager
def running_programs(
    commands: Mapping[str, Sequence[str]], out: Path
) -> Iterator[dict[str, Program]]:
    """Run programs by name for a block, their errors in ``NAME.err``; kill them at its end."""
    out.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        programs = {}
        for name, command in commands.items():
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stack.enter_context((out / f"{name}.err").open("wb")),
                text=True,
                cwd=ROOT,
            )
            stack.callback(process.communicate)
            stack.callback(process.kill)
            programs[name] = Program(name, process)
        yield programs
