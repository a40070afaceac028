"""Shows a run while it goes on: a screen on a terminal, else a line a second; programs get none."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from loadgen.engine.rows import Outcome
from loadgen.live.screen import LOST, Pulse, phase_of, screen
from loadgen.units import format_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from loadgen.engine.totals import Totals
    from loadgen.places.options import RunOptions
    from loadgen.places.sampling import Samples

_EVERY_SECONDS = 1.0


@contextmanager
def live_display(
    title: str,
    clients: Mapping[str, int],
    stream: TextIO,
    *,
    first: str = "connecting",
    as_json: bool = False,
) -> Iterator[Callable[[RunOptions], RunOptions]]:
    """Show a run on ``stream`` for a block; hand out what makes its options tell how it goes.

    Args:
        title: Name of the run.
        clients: How many each group has.
        stream: Standard error, mostly.
        first: What is done before there are any.
        as_json: For a program, which is shown nothing.
    """
    if as_json:
        yield lambda options: options
        return
    run = _Watched(title, clients, first)
    if stream.isatty():
        console = Console(file=stream)
        with Live(
            get_renderable=run.screen, console=console, refresh_per_second=4, transient=True
        ) as display:
            display.refresh()
            yield run.observed
        return
    with _lines(stream, run.line):
        yield run.observed


class _Watched:
    """What is known of a run. Mutable state: its servers, and the look at a simulation."""

    def __init__(self, title: str, clients: Mapping[str, int], first: str) -> None:
        self._title, self._clients, self._first, self._pulse = title, clients, first, Pulse()
        self._begun = self._pulse.now()
        self._samples: Samples | None = None
        self._look: Callable[[], tuple[float, Totals]] | None = None

    def observed(self, options: RunOptions) -> RunOptions:
        """Return options of a run that tells it how it goes."""
        return replace(
            options,
            on_progress=self._pulse.add,
            on_samples=partial(setattr, self, "_samples"),
            on_simulation=partial(setattr, self, "_look"),
        )

    def line(self) -> str:
        """Return a line about it; empty before there is anything to tell."""
        clients = sum(self._clients.values())
        if self._look is None:
            return progress_line(self._pulse, clients)
        at, totals = self._look()
        real = format_seconds(self._pulse.now() - self._begun)
        return f"simulated {max(0.0, at):.1f} s in {real}, {counts(totals, clients)}"

    def screen(self) -> Text:
        """Return a screen about it; in virtual time that line."""
        if self._look is not None:
            return Text(self.line(), overflow="ellipsis", no_wrap=True)
        return screen(self._title, self._first, self._clients, self._pulse, self._samples)


@contextmanager
def _lines(stream: TextIO, line: Callable[[], str]) -> Iterator[None]:
    """Write a line a second from a thread, if there is news: a simulation is only looked at."""
    ended = threading.Event()

    def tell_on() -> None:
        last, told = False, ""
        while not last:
            last = ended.wait(_EVERY_SECONDS)
            if (now := line()) != told:
                told = now
                stream.write(f"{told}\n")
                stream.flush()

    thread = threading.Thread(target=tell_on, name="display", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def progress_line(pulse: Pulse, clients: int) -> str:
    """Return one line for a person who waits, of less than 80 columns for 10,000 clients."""
    half = pulse.percentile(0.5)
    latency = "" if half is None else f", p50 {format_seconds(half)}"
    return f"{counts(pulse.totals, clients)}{latency}" if pulse.totals.connected else ""


def counts(totals: Totals, clients: int) -> str:
    """Return the phase of a run, and what became of its clients or requests."""
    count = totals.of(*LOST)
    done = f"{min(totals.connected, clients):,} of {clients:,} clients"
    if totals.started:
        answered, refused = totals.of(Outcome.ANSWERED), totals.of(Outcome.REFUSED)
        done = f"{totals.started:,} sent, {answered:,} answered, {refused:,} refused"
    return f"{phase_of(totals)}: {done}{f', {count:,} lost' if count else ''}"
