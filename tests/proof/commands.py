"""Commands of proofs, run to their end in the repository's folder."""

import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.processes import ROOT
from tests.proof.result import ProofError

LOADGEN = (sys.executable, "-m", "loadgen")


def run_logged(
    words: Sequence[str], log: Path, seconds: float, environment: Mapping[str, str] | None = None
) -> tuple[int, list[str]]:
    """Run a command; return its exit code and the lines of its output, also kept in a log."""
    with log.open("w", encoding="utf-8") as file:
        done = subprocess.run(
            words, cwd=ROOT, env=environment, stdout=file, stderr=file, timeout=seconds, check=False
        )
    return done.returncode, log.read_text(encoding="utf-8").strip().splitlines()


def run_pytest(
    words: Sequence[str], log: Path, seconds: float, environment: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Run tests; return the exit code and the last line."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
    code, lines = run_logged(command, log, seconds, environment)
    return code, (lines or ["pytest said nothing"])[-1].strip("= ")


def run_loadgen(
    words: Sequence[Any],
    allowed: Sequence[int] = (0,),
    command: Sequence[str] = LOADGEN,
    environment: Mapping[str, str] | None = None,
    seconds: float = 600.0,
) -> subprocess.CompletedProcess[str]:
    """Run a command of loadgen, and return its output.

    Raises:
        ProofError: Its exit code is not allowed.
    """
    done = subprocess.run(
        [*command, *map(str, words)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
    )
    if done.returncode not in allowed:
        last = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise ProofError(f"loadgen {words[0]} ended with {done.returncode}: {last}")
    return done


def wait_until(what: str, holds: Callable[[], object], seconds: float = 20.0) -> None:
    """Wait until a function returns a true value.

    Raises:
        ProofError: No true value in time.
    """
    give_up = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > give_up:
            raise ProofError(f"after {seconds:.0f} s still not: {what}")
        time.sleep(0.1)
