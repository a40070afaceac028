"""Shows a run while it goes on: a screen on a terminal, else a line a second; programs get none."""

from __future__ import annotations

import math
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from loadgen.engine.totals import Totals
from loadgen.live.screen import Ended, Pulse, ServerRows, screen
from loadgen.units import format_count, format_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from loadgen.places.sampling import Samples

    Look = Callable[[], tuple[float, Totals]]

_LINE_SECONDS = 0.9
_EVERY_SECONDS = 1.0


@dataclass
class Observer:
    """The one that a run tells how it is going; by itself it shows nothing.

    Attributes:
        on_progress: Told of new totals, about once a second, from another thread.
        on_samples: Told of what the servers are seen to do, once.
        on_simulation: Given a look at a run in virtual time, once: its seconds, and totals.
    """

    on_progress: Callable[[Totals], None] = field(default=lambda totals: None)
    on_samples: Callable[[Samples], None] = field(default=lambda samples: None)
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
        yield Observer(pulse.add, lambda samples: rows.append(ServerRows(samples)))


class _Lines:
    """Lines on a stream, at most one a second. Mutable state: what was told last, and when."""

    def __init__(
        self, clients: int, stream: TextIO, pulse: Pulse, now: Callable[[], float]
    ) -> None:
        self._clients, self._stream, self._pulse, self._now = clients, stream, pulse, now
        self._told, self._due = Totals(), -math.inf

    def take(self, totals: Totals) -> None:
        """Take in new totals; each task tells its own once a second, one line is for all."""
        self._pulse.add(totals)
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
    ended = Ended.of(totals)
    lost = f"  lost {ended.lost:,}" if ended.lost else ""
    if not totals.started:
        return f"connected {totals.connected:,} of {clients:,}{lost}"
    half = pulse.percentile(0.5)
    latency = f"  p50 {format_seconds(half)}" if half is not None else ""
    return (
        f"started {totals.started:,}  answered {ended.answered:,}  refused {ended.refused:,}"
        f"{lost}  {format_count(pulse.ended_per_second)}/s{latency}"
    )


@contextmanager
def simulated_display(stream: TextIO, *, as_json: bool = False) -> Iterator[Observer]:
    """Show a run in virtual time on ``stream``: one line that changes, or else a line a second.

    The run is only looked at, from a thread: it has no time of its own for this.
    """
    if as_json:
        yield Observer()
        return
    looks: list[Look] = []
    begun, ended = time.monotonic(), threading.Event()

    def line() -> str:
        took = time.monotonic() - begun
        return simulated_line(*looks[0](), took) if looks else "making the servers and their topics"

    def tell() -> None:
        told = -1.0
        while not ended.wait(_EVERY_SECONDS):
            at = looks[0]()[0] if looks else 0.0
            if at != told:
                told = at
                stream.write(f"{line()}\n")
                stream.flush()

    if stream.isatty():
        with Live(
            get_renderable=lambda: Text(line(), overflow="ellipsis", no_wrap=True),
            console=Console(file=stream), refresh_per_second=4, transient=True,
        ):  # fmt: skip
            yield Observer(on_simulation=looks.append)
        return
    thread = threading.Thread(target=tell, name="progress", daemon=True)
    thread.start()
    try:
        yield Observer(on_simulation=looks.append)
    finally:
        ended.set()
        thread.join()
    stream.write(f"{line()}\n")


def simulated_line(at_seconds: float, totals: Totals, real_seconds: float) -> str:
    """Return one line of less than 80 columns for half a million requests."""
    ended = Ended.of(totals)
    lost = f", {ended.lost:,} lost" if ended.lost else ""
    done = f"{ended.answered:,} answered, {ended.refused:,} refused{lost}"
    if not totals.started:
        done = f"connected {totals.connected:,}"
    return f"simulated {max(0.0, at_seconds):.1f} s in {format_seconds(real_seconds)}: {done}"
