"""Fuzzing campaign: a process per target until all inputs have run, then a table."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.fuzz.judge import ROOT
from tests.fuzz.registry import TARGETS
from tests.fuzz.rules import BOUND_MILLIS

NICENESS = 15
_SHARED_MEMORY = "/dev/shm"
MOST_ENDS = 10
"""Process exits after which a target is abandoned; each exit is a find."""
PATIENCE_SECONDS = 600.0


@dataclass
class Outcome:
    """Outcome of a target.

    Attributes:
        finds: Broken rules, and how often each.
        slow: Inputs with too long a turn even without instrumentation, and milliseconds.
        longest_turn_ms: Over all inputs, with instrumentation.
        own: The target's own counts.
    """

    name: str
    inputs: int = 0
    seconds: float = 0.0
    edges: int = 0
    reached_lines: int = 0
    lines: int = 0
    longest_turn_ms: float = 0.0
    finds: dict[str, int] = field(default_factory=dict)
    slow: dict[str, float] = field(default_factory=dict)
    own: dict[str, int] = field(default_factory=dict)

    @property
    def found_nothing(self) -> bool:
        return not self.finds and not self.slow

    @property
    def valid_share(self) -> float | None:
        """Return the share of accepted frames or requests; None without counts."""
        all_of_them = self.own.get("frames") or self.own.get("requests")
        return self.own["valid"] / all_of_them if all_of_them else None


class NoAtherisError(Exception):
    """atheris, the library that guides the search, is not installed."""


def fuzzed(
    name: str, inputs: int, out: Path, seed: int, note: Callable[[str], object] = lambda _: None
) -> Outcome:
    """Fuzz a target with ``inputs`` inputs.

    Raises:
        NoAtherisError: atheris is not installed.
    """
    outcome, corpus = Outcome(name), out / "corpus" / name
    for number in range(MOST_ENDS):
        folder = out / name / f"{seed}-{number}"
        folder.mkdir(parents=True, exist_ok=True)
        note(f"{outcome.inputs:,} of {inputs:,} inputs")
        _run(outcome, inputs - outcome.inputs, corpus, folder, seed + number)
        if outcome.inputs >= inputs:
            break
    _confirm_slow(outcome, out / name)
    note("lines")
    counted = _asked("lines", name, str(corpus))
    outcome.reached_lines, outcome.lines = counted["reached"], counted["lines"]
    return outcome


def _run(outcome: Outcome, inputs: int, corpus: Path, out: Path, seed: int) -> None:
    """Run a process, and add its report to the outcome."""
    command = ["nice", "-n", str(NICENESS), sys.executable, "-m", "tests.fuzz.child", outcome.name]
    command += ["--inputs", str(inputs), "--corpus", str(corpus), "--out", str(out)]
    begun = time.perf_counter()
    command += ["--seed", str(seed)]
    # A crashed process cannot remove its files; files in memory are fast.
    base = _SHARED_MEMORY if Path(_SHARED_MEMORY).is_dir() else None
    with (
        TemporaryDirectory(prefix="floodgate-fuzz-", dir=base) as scratch,
        (out / "log").open("w", encoding="utf-8") as log,
    ):
        environment = {**os.environ, "TMPDIR": scratch}
        ended = subprocess.run(
            command, cwd=ROOT, stdout=log, stderr=log, check=False, env=environment
        )
    outcome.seconds += time.perf_counter() - begun
    log_text = (out / "log").read_text(encoding="utf-8", errors="replace")
    if "No module named 'atheris'" in log_text:
        raise NoAtherisError("atheris is not there: it is for Linux on x86-64; run: make fuzz")
    _add(outcome, out / "figures.json")
    covered = [
        line.split("cov: ")[1].split()[0] for line in log_text.splitlines() if "cov: " in line
    ]
    outcome.edges = max(outcome.edges, *(int(one) for one in covered[-1:]), 0)
    if ended.returncode != 0:
        outcome.finds[f"the process ended with {ended.returncode}: see {out}"] = 1


def _add(outcome: Outcome, path: Path) -> None:
    if not path.exists():
        return
    figures: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    outcome.inputs += figures.pop("inputs")
    outcome.longest_turn_ms = max(outcome.longest_turn_ms, figures.pop("longest_turn_ms"))
    for find, count in figures.pop("finds").items():
        outcome.finds[find] = outcome.finds.get(find, 0) + count
    for known in ("seconds", "cpu_seconds", "refused"):
        figures.pop(known)
    for word, count in figures.items():
        outcome.own[word] = outcome.own.get(word, 0) + count


def _confirm_slow(outcome: Outcome, folder: Path) -> None:
    """Rerun seemingly slow inputs without instrumentation, which slows all code."""
    for path in sorted(folder.glob("*/slow/*.bin")):
        millis = _asked("replay", outcome.name, str(path), "--json")["longest_turn_ms"]
        if millis > BOUND_MILLIS:
            outcome.slow[str(path)] = millis


def _asked(module: str, *arguments: str) -> dict[str, Any]:
    """Return the JSON output of another process."""
    answer = subprocess.run(
        [sys.executable, "-m", f"tests.fuzz.{module}", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=True,
    )
    found: dict[str, Any] = json.loads(answer.stdout)
    return found


def amounts(names: list[str] | None, inputs: int | None, share: float) -> dict[str, int]:
    """Return the number of inputs of each requested target."""
    return {
        name: inputs if inputs is not None else max(1, round(TARGETS[name].inputs * share))
        for name in names or TARGETS
    }
