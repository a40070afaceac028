"""Runs one scenario on Floodgate and on a real Pulsar, in turn, each in a process of its own."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadgen.errors import ExitCode, LoadgenError
from server.module_names import python_path
from server.module_names import module_name

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PAGE_NAME = "beside.md"
REPORT_NAME = "beside.html"
# Of one side: the other has its own.
_OF_A_SIDE = (
    "--service-url",
    "--broker-admin-url",
    "--proxy-admin-url",
    "--broker-pid",
    "--proxy-pid",
    "--broker-conf",
    "--proxy-conf",
)
_MEASURED = (
    ExitCode.PASSED,
    ExitCode.CORRECTNESS,
    ExitCode.GENERATOR_LIMITED,
    ExitCode.THRESHOLDS,
)


@dataclass(frozen=True)
class Sides:
    """Two sides that are asked alike.

    Attributes:
        arguments: What is run, as behind ``loadgen run``; options of servers are Floodgate's.
        address: The real Pulsar's.
        admin_url: Its web port, to watch it; None watches nothing there.
        out: Directory of the run directories.
    """

    arguments: Sequence[str]
    address: str
    admin_url: str | None
    out: Path
    repeats: int

    @property
    def command(self) -> str:
        """The arguments that both sides share."""
        return shlex.join(shared_arguments(self.arguments))

    def runs(self) -> list[tuple[str, list[str]]]:
        """Return name and arguments of each run, both sides in turn."""
        shared = shared_arguments(self.arguments)
        pulsar = [*shared, "--service-url", self.address]
        if self.admin_url is not None:
            pulsar += ["--broker-admin-url", self.admin_url]
        sides = (("Floodgate", list(self.arguments)), ("Pulsar", pulsar))
        return [
            (
                f"{label.lower()}-{number}",
                [*given, "--label", label, "--name", f"{label.lower()}-{number}"],
            )
            for number in range(1, self.repeats + 1)
            for label, given in sides
        ]


def shared_arguments(arguments: Sequence[str]) -> list[str]:
    """Return arguments without those that name one side's servers."""
    shared, skipped = [], False
    for argument in arguments:
        option, equals, _ = argument.partition("=")
        if skipped:
            skipped = False
        elif option in _OF_A_SIDE:
            skipped = not equals
        else:
            shared.append(argument)
    return shared


def run_both(sides: Sides) -> list[Path]:
    """Run the scenario on both sides and return the run directories, Floodgate's first.

    Raises:
        LoadgenError: A run measured nothing; the sentence is its last.
    """
    for name, arguments in sides.runs():
        sys.stderr.write(f"{name}\n")
        sys.stderr.flush()
        _run([*arguments, "--out", str(sides.out)], name)
    return [sides.out / name for name, _ in sorted(sides.runs(), key=lambda run: run[0])]


def _run(arguments: Sequence[str], name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", module_name("loadgen"), "run", *arguments],
        env={**os.environ, **python_path()},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode not in set(_MEASURED):
        last = (done.stderr.strip().splitlines() or ["without a word"])[-1]
        known = done.returncode in set(ExitCode)
        code = ExitCode(done.returncode) if known else ExitCode.INTERNAL
        raise LoadgenError(f"{name} measured nothing: {last.removeprefix('loadgen: ')}", code)
