"""The display of a run in progress.

On a terminal it is a screen of 80 by 24 characters, otherwise a line a second.

Programs, which read JSON, get no display. All output goes to standard error.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter, deque
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from loadgen.engine.rows import Outcome
from loadgen.engine.totals import Totals, percentile
from loadgen.results.units import LOST
from loadgen.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from loadgen.places.options import RunOptions
    from loadgen.places.sampling import Samples

COLUMNS, ROWS = 80, 24
WINDOW_SECONDS = 5.0
_EVERY_SECONDS = 1.0
_PHASES = {"connect": "connecting", "measure": "measuring", "drain": "draining"}
"""Displayed names of phases that differ from :class:`Totals`."""
_MOST_GROUPS = 6
_BAR, _FULL = 24, 0.9
_LOOKS, _CPU = 8, "process_cpu_seconds_total"
"""Number of samples from which the screen computes recent use of the processor."""
_HEADS = f"{'started':>31}{'back':>10}{'answered':>10}{'refused':>10}{'lost':>10}"
_RULE = Text("─" * COLUMNS, "bright_black")


@contextmanager
def live_display(
    title: str,
    clients: Mapping[str, int],
    stream: TextIO,
    *,
    first: str = "connecting",
    as_json: bool = False,
) -> Iterator[Callable[[RunOptions], RunOptions]]:
    """Show a run's progress on a stream during a ``with`` block.

    Yields a function that adds the display's callbacks to the run's options.

    Args:
        title: Name of the run.
        clients: The number of clients of each group.
        stream: The output stream, usually standard error.
        first: The word shown while no client is connected yet.
        as_json: Whether the output is for a program; then there is no display.
    """
    run = LiveRun(title, clients, first)
    if as_json:
        yield lambda options: options
    elif stream.isatty():
        console = Console(file=stream)
        with Live(
            get_renderable=run.screen, console=console, refresh_per_second=4, transient=True
        ) as display:
            display.refresh()
            yield run.observed
    else:
        with _lines(stream, run.line):
            yield run.observed


@contextmanager
def _lines(stream: TextIO, line: Callable[[], str]) -> Iterator[None]:
    """Write a progress line to the stream once a second if it has changed.

    A thread writes the line, because a simulation blocks the main thread.
    """
    ended = threading.Event()

    def write_lines() -> None:
        last, written = False, ""
        while not last:
            last = ended.wait(_EVERY_SECONDS)
            if (now := line()) != written:
                written = now
                stream.write(f"{now}\n")
                stream.flush()

    thread = threading.Thread(target=write_lines, name="display", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


class LiveRun:
    """The newest totals of a run in progress, shown as a screen or a line.

    Mutable state: the totals of the last seconds by moment, the moment of the first request, the
    samples of servers, and the function that inspects a simulation. Bound: of all totals older than
    the last five seconds only the newest are kept.

    Args:
        title: Name of the run.
        clients: The number of clients of each group.
        first: The word shown while no client is connected yet.
        now: Reads a clock, in seconds.
    """

    def __init__(
        self,
        title: str,
        clients: Mapping[str, int],
        first: str = "connecting",
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._title, self._clients, self._first, self._now = title, clients, first, now
        self._begun, self._first_request = now(), math.inf
        self._seen: deque[tuple[float, Totals]] = deque([(self._begun, Totals())])
        self._samples: Samples | None = None
        self._look: Callable[[], tuple[float, Totals]] | None = None

    def observed(self, options: RunOptions) -> RunOptions:
        """Return a run's options with callbacks that report progress to this display."""
        return replace(
            options,
            on_progress=self.add,
            on_samples=partial(setattr, self, "_samples"),
            on_simulation=partial(setattr, self, "_look"),
        )

    def add(self, totals: Totals) -> None:
        """Add the newest totals of the run."""
        at = self._now()
        if totals.started:
            self._first_request = min(self._first_request, at)
        self._seen.append((at, totals))
        while len(self._seen) > 2 and self._seen[1][0] <= at - WINDOW_SECONDS:
            self._seen.popleft()

    @property
    def ended_per_second(self) -> float:
        """The number of requests that ended, per second, averaged over the last five seconds."""
        (before, then), (at, now) = self._seen[0], self._seen[-1]
        ended = sum(now.ended.values()) - sum(then.ended.values())
        return ended / (at - before) if at > before else 0.0

    def percentile(self, share: float) -> float | None:
        """Return a percentile of the latencies in the last five seconds; None without answers."""
        then, now = (self._seen[place][1].all_latencies for place in (0, -1))
        return percentile([b - a for a, b in zip(then, now, strict=True)], share)

    def line(self) -> str:
        """Return the run's progress as one line; empty before the first connection.

        For 10,000 clients the line has less than 80 characters.
        """
        clients, totals = sum(self._clients.values()), self._seen[-1][1]
        if self._look is not None:
            at, totals = self._look()
            real = format_seconds(self._now() - self._begun)
            return f"simulated {max(0.0, at):.1f} s in {real}, {counts(totals, clients)}"
        half = self.percentile(0.5)
        latency = "" if half is None else f", p50 {format_seconds(half)}"
        return f"{counts(totals, clients)}{latency}" if totals.connected else ""

    def screen(self) -> Text:
        """Return the run's progress as a screen or, for a run in virtual time, as a line."""
        if self._look is not None:
            return Text(self.line(), overflow="ellipsis", no_wrap=True)
        totals = self._seen[-1][1]
        shown = {"all": self._clients}
        if len(self._clients) > 1:
            groups = list(self._clients.items())[:_MOST_GROUPS]
            shown |= {name: {name: count} for name, count in groups}
        half, most = self.percentile(0.5), self.percentile(0.99)
        lately = "nothing answered"
        if half is not None and most is not None:
            lately = f"p50 {format_seconds(half)}, p99 {format_seconds(most)}"
        sent, ended = f"{totals.started:,} sent", f"{sum(totals.ended.values()):,} ended"
        lines = [
            self._heading(totals),
            _RULE,
            Text(_HEADS, "bright_black"),
            *(_group_line(name, totals, clients) for name, clients in shown.items()),
            Text(),
            Text(f" requests  {sent}, {ended}, {format_bytes(totals.bytes)} read"),
            Text(f" last 5 s  {format_count(self.ended_per_second)} a second, {lately}"),
        ]
        if self._samples is not None:
            lines += [_RULE, *server_lines(self._samples)]
        for line in lines:
            line.truncate(COLUMNS)
        return Text("\n").join(lines[: ROWS - 1])

    def _heading(self, totals: Totals) -> Text:
        right = _phase_of(totals) if totals.connected or totals.started else self._first
        if self._first_request < math.inf:
            right += f"  {self._now() - self._first_request:.0f} s"
        room = COLUMNS - len(right) - 3
        left = self._title if len(self._title) <= room else f"{self._title[: room - 1]}…"
        return Text(f" {left:<{room}} ", "bold").append(f"{right} ", "cyan")


def _phase_of(totals: Totals) -> str:
    return _PHASES.get(totals.phase, totals.phase)


def counts(totals: Totals, clients: int) -> str:
    """Return words on a run's phase and its requests' outcomes or, before, on connected clients."""
    lost = totals.of(*LOST)
    done = f"{min(totals.connected, clients):,} of {clients:,} clients"
    if totals.started:
        answered, refused = totals.of(Outcome.ANSWERED), totals.of(Outcome.REFUSED)
        done = f"{totals.started:,} sent, {answered:,} answered, {refused:,} refused"
    return f"{_phase_of(totals)}: {done}{f', {lost:,} lost' if lost else ''}"


def _group_line(name: str, totals: Totals, clients: Mapping[str, int]) -> Text:
    became = Counter[str]()
    for key, count in totals.ended.items():
        group, _, outcome = key.split(" ")
        if group in clients:
            became["lost" if outcome in LOST else outcome] += count
    started, back = (
        sum(totals.clients[f"{group} {what}"] for group in clients) for what in ("started", "back")
    )
    wanted = sum(clients.values())
    share = format_count(started) + (f" of {format_count(wanted)}" if started < wanted else "")
    line = Text(f" {name[:13]:<14}{share:>16}{back:>10,}{became['answered']:>10,}")
    for what, style in (("refused", "yellow"), ("lost", "red")):
        line.append(f"{became[what]:>10,}", style if became[what] else "")
    return line


def server_lines(samples: Samples) -> Iterator[Text]:
    """Yield lines about each sampled server: its memory, the memory limits, CPU and open files.

    At most three lines for each server; a figure without a sample is left out.
    """
    for name in samples.processes:
        figures, label = samples.figures(name), name
        for kind in ("heap", "direct"):
            if figures.get(f"{kind}.limit", 0) > 0:
                yield _limit_line(label, kind, figures)
                label = ""
        held = {"memory": figures.get("resident"), "unread": figures.get("unread")}
        parts = [f"{word} {format_bytes(size)}" for word, size in held.items() if size is not None]
        moments, seconds = (each[-_LOOKS:] for each in samples.series(name, _CPU))
        if moments and moments[-1] > moments[0]:
            parts.append(f"CPU {(seconds[-1] - seconds[0]) / (moments[-1] - moments[0]):.2f}")
        if "descriptors" in figures:
            limit = figures.get("descriptors.limit")
            of = f" of {format_count(limit)}" if limit else ""
            parts.append(f"files {format_count(figures['descriptors'])}{of}")
        yield Text(f" {label:<8}{'  '.join(parts) or 'tells nothing'}")


def _limit_line(label: str, kind: str, figures: Mapping[str, float]) -> Text:
    used, limit = figures.get(f"{kind}.used", 0.0), figures[f"{kind}.limit"]
    waiting, share = figures.get(f"{kind}.waiting"), min(1.0, used / limit)
    full = max(round(share * _BAR), 1 if used else 0)  # A little is not shown as 0.
    return Text.assemble(
        f" {label:<8}{kind:<7}",
        ("█" * full, "red" if share >= _FULL else "green"),
        ("░" * (_BAR - full), "bright_black"),
        f" {format_bytes(used)} of {format_bytes(limit)}",
        f"  {format_count(waiting)} wait" if waiting else "",
    )
