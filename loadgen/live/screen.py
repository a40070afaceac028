"""One screen of 80 by 24 about a run that goes on: its clients, its pace, its servers."""

from __future__ import annotations

import time
from collections import Counter, deque
from typing import TYPE_CHECKING

from rich.text import Text

from loadgen.engine.rows import Outcome
from loadgen.engine.totals import Totals, percentile
from loadgen.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from loadgen.places.sampling import Samples

COLUMNS, ROWS = 80, 24
WINDOW_SECONDS = 5.0
LOST = (Outcome.WRONG, Outcome.TIMEOUT, Outcome.DISCONNECTED, Outcome.UNREACHABLE)
_PHASES = {"connect": "connecting", "measure": "measuring", "drain": "draining"}
"""Words of phases that are called otherwise in :class:`Totals`."""
_MOST_GROUPS = 6
_BAR, _FULL = 24, 0.9
_LOOKS, _CPU = 8, "process_cpu_seconds_total"
"""So many of the latest samples tell how fast processor time grows."""
_RULE = Text("─" * COLUMNS, "bright_black")


def phase_of(totals: Totals) -> str:
    """Return the phase that a run is in, as a word."""
    return _PHASES.get(totals.phase, totals.phase)


class Pulse:
    """Totals, and what they were some seconds ago.

    Mutable state: the totals of the last seconds, each with its moment, and when the first request
    was under way. Bound: totals older than the window are given up, but for one.

    Args:
        now: Reads a clock, in seconds.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self._seen: deque[tuple[float, Totals]] = deque([(now(), Totals())])
        self._began: float | None = None

    def add(self, totals: Totals) -> None:
        """Take in new totals."""
        at = self.now()
        if self._began is None and totals.started:
            self._began = at
        self._seen.append((at, totals))
        while len(self._seen) > 2 and self._seen[1][0] <= at - WINDOW_SECONDS:
            self._seen.popleft()

    @property
    def totals(self) -> Totals:
        """The latest totals."""
        return self._seen[-1][1]

    @property
    def seconds(self) -> float | None:
        """Seconds since the first request was under way; None before."""
        return None if self._began is None else self.now() - self._began

    @property
    def ended_per_second(self) -> float:
        """Requests that ended, a second, lately."""
        (before, then), (at, now) = self._seen[0], self._seen[-1]
        ended = sum(now.ended.values()) - sum(then.ended.values())
        return ended / (at - before) if at > before else 0.0

    def percentile(self, share: float) -> float | None:
        """Return a percentile of what was answered lately; None of nothing."""
        then, now = self._seen[0][1], self._seen[-1][1]
        return percentile(
            [b - a for a, b in zip(then.all_latencies, now.all_latencies, strict=True)], share
        )

    @property
    def lately(self) -> str:
        """Median and 99th percentile of what was answered lately, in words."""
        half, most = self.percentile(0.5), self.percentile(0.99)
        if half is None or most is None:
            return "nothing answered"
        return f"p50 {format_seconds(half)}, p99 {format_seconds(most)}"


def server_lines(samples: Samples) -> Iterator[Text]:
    """Yield what each watched server holds of its limits, and what its process uses.

    At most three lines for each; a figure that nobody tells is left out.
    """
    for name in samples.processes:
        figures, label = samples.figures(name), name
        for kind in ("heap", "direct"):
            if figures.get(f"{kind}.limit", 0) > 0:
                yield _limit_line(label, kind, figures)
                label = ""
        parts = [
            f"{word} {format_bytes(figures[figure])}"
            for word, figure in (("memory", "resident"), ("unread", "unread"))
            if figure in figures
        ]
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
    full = max(round(share * _BAR), 1 if used else 0)  # What is more than nothing shows.
    return Text.assemble(
        f" {label:<8}{kind:<7}",
        ("█" * full, "red" if share >= _FULL else "green"),
        ("░" * (_BAR - full), "bright_black"),
        f" {format_bytes(used)} of {format_bytes(limit)}",
        f"  {format_count(waiting)} wait" if waiting else "",
    )


def screen(
    title: str, first: str, clients: Mapping[str, int], pulse: Pulse, samples: Samples | None
) -> Text:
    """Return the whole screen as text.

    Args:
        title: Name of the run.
        first: What is done before a client is connected.
        clients: How many each group has.
        pulse: The clients' figures.
        samples: What was seen of servers; None if none is watched.
    """
    totals = pulse.totals
    lines = [_heading(title, first, pulse), _RULE]
    heads = "".join(f"{head:>10}" for head in ("started", "back", "answered", "refused", "lost"))
    lines.append(Text(f" {'':<20}{heads}", "bright_black"))
    lines.append(_group_line("all", totals, clients))
    if len(clients) > 1:
        shown = list(clients)[:_MOST_GROUPS]
        lines += [_group_line(name, totals, {name: clients[name]}) for name in shown]
    sent, ended = f"{totals.started:,} sent", f"{sum(totals.ended.values()):,} ended"
    lines += [
        Text(),
        Text(f" requests  {sent}, {ended}, {format_bytes(totals.bytes)} read"),
        Text(f" last 5 s  {format_count(pulse.ended_per_second)} a second, {pulse.lately}"),
    ]
    if samples is not None:
        lines += [_RULE, *server_lines(samples)]
    for line in lines:
        line.truncate(COLUMNS)
    return Text("\n").join(lines[: ROWS - 1])


def _heading(title: str, first: str, pulse: Pulse) -> Text:
    totals, seconds = pulse.totals, pulse.seconds
    right = phase_of(totals) if totals.connected or totals.started else first
    right += "" if seconds is None else f"  {seconds:.0f} s"
    room = COLUMNS - len(right) - 3
    left = title if len(title) <= room else f"{title[: room - 1]}…"
    return Text(f" {left:<{room}} ", "bold").append(f"{right} ", "cyan")


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
