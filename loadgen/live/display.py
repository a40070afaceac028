"""Shows a run while it goes on: a screen on a terminal, else a line a second; programs get none."""

from __future__ import annotations

import math
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.live import Live

from loadgen.clients.records import RequestCounters
from loadgen.live.pulse import Pulse
from loadgen.live.screen import screen
from loadgen.live.servers import ServerRows
from loadgen.units import format_count, format_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.text import Text

    from loadgen.clients.records import Look
    from loadgen.servers.series import WatchedServers

_LINE_SECONDS = 0.9


@dataclass
class Observer:
    """The one that a run tells how it is going; by itself it shows nothing.

    Attributes:
        on_counters: Told of new totals, about once a second, from another thread.
        on_watch: Told of the watch over the servers, once.
        on_simulation: Given a look at a run in virtual time, once: its seconds, and totals.
    """

    on_counters: Callable[[RequestCounters], None] = field(default=lambda counters: None)
    on_watch: Callable[[WatchedServers], None] = field(default=lambda watch: None)
    on_simulation: Callable[[Look], None] = field(default=lambda look: None)


@contextmanager
def live_display(
    title: str,
    clients: int,
    stream: TextIO,
    *,
    first: str = "connecting",
    as_json: bool = False,
    now: Callable[[], float] = time.monotonic,
) -> Iterator[Observer]:
    """Show a run on ``stream`` for the time of the block.

    Args:
        title: Name of the run.
        clients: How many connections they begin with.
        stream: Standard error, mostly.
        first: What is done before there are any.
        as_json: For a program, which is shown nothing.
        now: Reads a clock, in seconds.
    """
    if as_json:
        yield Observer()
        return
    pulse = Pulse(now)
    if not stream.isatty():
        lines = _Lines(clients, stream, pulse, now)
        lines.say(first)
        yield Observer(lines.take)
        lines.tell()
        return
    rows: list[ServerRows] = []

    def shown() -> Text:
        return screen(title, first, clients, pulse, rows[0] if rows else None)

    console = Console(file=stream)
    with Live(get_renderable=shown, console=console, refresh_per_second=4, transient=True) as live:
        live.refresh()
        yield Observer(pulse.add, lambda watch: rows.append(ServerRows(watch)))


class _Lines:
    """Lines on a stream, at most one a second. Mutable state: what was told last, and when."""

    def __init__(
        self, clients: int, stream: TextIO, pulse: Pulse, now: Callable[[], float]
    ) -> None:
        self._clients, self._stream, self._pulse, self._now = clients, stream, pulse, now
        self._told, self._due = RequestCounters(), -math.inf

    def take(self, counters: RequestCounters) -> None:
        """Take in new totals; each task tells its own once a second, one line is for all."""
        self._pulse.add(counters)
        if self._now() >= self._due:
            self.tell()

    def tell(self) -> None:
        """Write a line if there is news."""
        totals = self._pulse.totals
        if totals != self._told:
            self._told, self._due = totals, self._now() + _LINE_SECONDS
            self.say(progress_line(self._pulse, self._clients))

    def say(self, line: str) -> None:
        """Write a line at once."""
        self._stream.write(f"{line}\n")
        self._stream.flush()


def progress_line(pulse: Pulse, clients: int) -> str:
    """Return one line for a person who waits, of less than 80 columns for 10,000 clients."""
    totals = pulse.totals
    lost = f"  lost {totals.lost:,}" if totals.lost else ""
    if not totals.started:
        return f"connected {totals.connected:,} of {clients:,}{lost}"
    half = pulse.percentile(0.5)
    latency = f"  p50 {format_seconds(half)}" if half is not None else ""
    return (
        f"started {totals.started:,}  answered {totals.answered:,}  refused {totals.refused:,}"
        f"{lost}  {format_count(pulse.ended_per_second)}/s{latency}"
    )
