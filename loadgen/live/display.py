"""Shows a run while it goes on: a screen on a terminal, else a line a second; programs get none."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from loadgen.engine.rows import Outcome
from loadgen.live.screen import LOST, Pulse, ServerRows, screen
from loadgen.units import format_count, format_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from loadgen.engine.totals import Totals

_EVERY_SECONDS = 1.0


@contextmanager
def live_display(
    title: str,
    clients: Mapping[str, int],
    stream: TextIO,
    *,
    first: str = "connecting",
    as_json: bool = False,
    pulse: Pulse | None = None,
) -> Iterator[dict[str, Callable[..., Any]]]:
    """Show a run on ``stream`` for the time of the block; hand out who takes its figures.

    Args:
        title: Name of the run.
        clients: How many each group has.
        stream: Standard error, mostly.
        first: What is done before there are any.
        as_json: For a program, which is shown nothing.
        pulse: Its totals; those of another clock in tests.

    Yields:
        The functions that the options of a run have for it, by their names there.
    """
    if as_json:
        yield {}
        return
    pulse = pulse or Pulse()
    rows: list[ServerRows] = []
    looks: list[Callable[[], tuple[float, Totals]]] = []
    begun = pulse.now()

    def simulated() -> str:
        at_seconds, totals = looks[0]()
        return simulated_line(at_seconds, totals, pulse.now() - begun)

    def line() -> str:
        if looks:
            return simulated()
        return progress_line(pulse, sum(clients.values()))

    def shown() -> Text:
        if looks:
            return Text(simulated(), overflow="ellipsis", no_wrap=True)
        return screen(title, first, clients, pulse, rows[0] if rows else None)

    observer = {
        "on_progress": pulse.add,
        "on_samples": lambda samples: rows.append(ServerRows(samples)),
        "on_simulation": looks.append,
    }
    if stream.isatty():
        console = Console(file=stream)
        with Live(
            get_renderable=shown, console=console, refresh_per_second=4, transient=True
        ) as it:
            it.refresh()
            yield observer
        return
    with _lines(stream, line):
        yield observer


@contextmanager
def _lines(stream: TextIO, line: Callable[[], str]) -> Iterator[None]:
    """Write a line a second from a thread, if there is news: a simulation is only looked at."""
    ended, told = threading.Event(), ""

    def tell() -> None:
        nonlocal told
        if line() != told:
            told = line()
            stream.write(f"{told}\n")
            stream.flush()

    def tell_on() -> None:
        while not ended.wait(_EVERY_SECONDS):
            tell()

    thread = threading.Thread(target=tell_on, name="display", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    tell()


def progress_line(pulse: Pulse, clients: int) -> str:
    """Return one line for a person who waits, of less than 80 columns for 10,000 clients."""
    totals = pulse.totals
    if not totals.connected:
        return ""
    count = totals.of(*LOST)
    lost = f"  lost {count:,}" if count else ""
    if not totals.started:
        return f"connected {totals.connected:,} of {clients:,}{lost}"
    half = pulse.percentile(0.5)
    latency = f"  p50 {format_seconds(half)}" if half is not None else ""
    return (
        f"started {totals.started:,}  answered {totals.of(Outcome.ANSWERED):,}  "
        f"refused {totals.of(Outcome.REFUSED):,}{lost}  "
        f"{format_count(pulse.ended_per_second)}/s{latency}"
    )


def simulated_line(at_seconds: float, totals: Totals, real_seconds: float) -> str:
    """Return one line of less than 80 columns for half a million requests."""
    count = totals.of(*LOST)
    lost = f", {count:,} lost" if count else ""
    answered, refused = totals.of(Outcome.ANSWERED), totals.of(Outcome.REFUSED)
    done = f"{answered:,} answered, {refused:,} refused{lost}"
    if not totals.started:
        done = f"connected {totals.connected:,}"
    return f"simulated {max(0.0, at_seconds):.1f} s in {format_seconds(real_seconds)}: {done}"
