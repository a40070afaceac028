"""Phases with observed clients: PING from outside, the loop's lag from within."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.controlled_process import ControlledProcess
from tests.proof.result import ProofResult

GOAL_MS = 100.0
AFTER_SECONDS = 0.2
"""Work after a phase (release of memory) counts as part of it."""
_COLUMNS = 100


@dataclass
class Phase:
    """Some work, its duration, and the delays of observers.

    Attributes:
        seconds: Duration; a phase may set it to its client's measurement.
    """

    name: str
    seconds: float = 0.0
    ping: dict[str, Any] | None = None
    lag: dict[str, Any] | None = None

    @property
    def met(self) -> bool:
        """True if no observer waited long."""
        if self.ping is None or self.lag is None or self.ping["closed"]:
            return False
        return bool(self.ping["worst_ms"] <= GOAL_MS and self.lag["worst_ms"] <= GOAL_MS)


class Phases:
    """The phases of a proof.

    Args:
        server: A benchmarks.watches.server that samples.
        pinger: A tests.proof.peers.pinging that pings it.
    """

    def __init__(self, server: ControlledProcess, pinger: ControlledProcess) -> None:
        self._server = server
        self._pinger = pinger
        self.done: list[Phase] = []

    @contextmanager
    def phase(self, name: str) -> Iterator[Phase]:
        """Watch a block."""
        self._server.ask("lags")
        self._pinger.ask("take")
        phase, began = Phase(name), perf_counter()
        yield phase
        phase.seconds = phase.seconds or perf_counter() - began
        sleep(AFTER_SECONDS)
        phase.lag = self._server.ask("lags")
        phase.ping = self._pinger.ask("take")
        self.done.append(phase)


def judge(phases: Sequence[Phase], result: ProofResult, *, quick: bool) -> None:
    """Add a check for each phase, and its figures."""
    for phase in phases:
        ping, lag = phase.ping or {}, phase.lag or {}
        result.figures[phase.name] = {"seconds": phase.seconds, "ping": ping, "lag": lag}
        result.check(
            f"{phase.name}: nobody waits long",
            phase.met or quick,
            f"{phase.name}: {phase.seconds:.2f} s; meanwhile PING at most {ping['worst_ms']:.0f} ms"
            f" (99 %: {ping['p99_ms']:.0f}), loop lag at most {lag['worst_ms']:.0f} ms "
            f"(99 %: {lag['p99_ms']:.0f}); allowed are {GOAL_MS:g} ms",
        )


def write_table(path: Path, phases: Sequence[Phase]) -> None:
    table = Table(title="What others notice, at most", title_justify="left", width=_COLUMNS)
    table.add_column("Phase", ratio=1)
    for heading in ("s", "PING ms", "loop lag ms", "collection ms", "goal ms", "met"):
        table.add_column(heading, justify="right", no_wrap=True)
    for phase in phases:
        ping, lag = phase.ping or {}, phase.lag or {}
        worst = (ping["worst_ms"], lag["worst_ms"], lag["worst_collection_ms"])
        figures = (f"{phase.seconds:.2f}", *(f"{one:.0f}" for one in worst), f"{GOAL_MS:g}")
        table.add_row(phase.name, *figures, "yes" if phase.met else "NO")
    with path.open("w", encoding="utf-8") as file:
        Console(file=file, width=_COLUMNS).print(table)
