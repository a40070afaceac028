"""One screen of 80 by 24 about a run that goes on: its clients, its pace, its servers."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from rich.text import Text

from loadgen.engine.latency_buckets import percentile
from loadgen.engine.rows import Outcome
from loadgen.engine.totals import Totals
from loadgen.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from loadgen.places.sampling import Samples

COLUMNS = 80
ROWS = 24
WINDOW_SECONDS = 5.0
_MOST_GROUPS = 6
_CLIENTS_BAR, _SERVERS_BAR = 20, 24
_CPU_SECONDS = 2.0
_FULL = 0.9


class Ended(NamedTuple):
    """Requests that ended: what came of them, in three words."""

    answered: int
    refused: int
    lost: int

    @classmethod
    def of(cls, totals: Totals) -> Ended:
        """Return those of a run by now."""
        lost = totals.of(Outcome.TIMEOUT, Outcome.DISCONNECTED, Outcome.UNREACHABLE)
        answered = totals.of(Outcome.ANSWERED, Outcome.WRONG)
        return cls(answered, totals.of(Outcome.REFUSED), lost)


class Pulse:
    """Totals, and what they were some seconds ago.

    Mutable state: the totals of the last seconds, each with its moment, and when the first request
    was under way. Bound: totals older than the window are given up, but for one.

    Args:
        now: Reads a clock, in seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._seen: deque[tuple[float, Totals]] = deque([(now(), Totals())])
        self._began: float | None = None

    def add(self, totals: Totals) -> None:
        """Take in new totals."""
        at = self._now()
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
        return None if self._began is None else self._now() - self._began

    @property
    def ended_per_second(self) -> float:
        """Requests that ended, a second, lately."""
        (before, then), (at, now) = self._seen[0], self._seen[-1]
        return (sum(Ended.of(now)) - sum(Ended.of(then))) / (at - before) if at > before else 0.0

    def percentile(self, share: float) -> float | None:
        """Return a percentile of what was answered lately; None of nothing."""
        then, now = self._seen[0][1], self._seen[-1][1]
        counts = [b - a for a, b in zip(then.latencies, now.latencies, strict=True)]
        return percentile(counts, share)


def screen(title: str, first: str, clients: int, pulse: Pulse, servers: ServerRows | None) -> Text:
    """Return the whole screen as text.

    Args:
        title: Name of the run.
        first: What is done before a client is connected.
        clients: How many there will be.
        pulse: The clients' figures.
        servers: The servers' rows; None if none is watched.
    """
    lines = [_heading(title, first, clients, pulse), Text("─" * COLUMNS, "bright_black")]
    lines += _client_lines(clients, pulse.totals)
    lines += [Text(), *_pace(pulse)]
    if servers is not None:
        lines += [Text("─" * COLUMNS, "bright_black"), *servers.lines()]
    for line in lines:
        line.truncate(COLUMNS)
    return Text("\n").join(lines[: ROWS - 1])


def phase_of(pulse: Pulse, clients: int, first: str) -> str:
    """Return what is going on, in a word or a few."""
    totals = pulse.totals
    if totals.phase != "connect":
        return totals.phase
    return f"connected {totals.connected:,} of {clients:,}" if totals.connected else first


def _heading(title: str, first: str, clients: int, pulse: Pulse) -> Text:
    seconds = pulse.seconds
    phase = phase_of(pulse, clients, first)
    right = phase if seconds is None else f"{phase}  {seconds:.0f} s"
    room = COLUMNS - len(right) - 3
    left = title if len(title) <= room else f"{title[: room - 1]}…"
    return Text(f" {left:<{room}} ", "bold").append(f"{right} ", "cyan")


def _client_lines(clients: int, totals: Totals) -> Iterator[Text]:
    """Yield a line for all clients, and one for each group where there are several."""
    heads = (f"{head:>10}" for head in ("arrived", "back", "refused", "lost"))
    yield Text(f" {'':<12}{''.join(heads)}", "bright_black")
    words = ("started", "back", "refused", "lost")
    groups = sorted({name.partition(" ")[0] for name in totals.clients})
    counted = {group: [totals.clients[f"{group} {word}"] for word in words] for group in groups}
    yield _client_line(
        "all", list(map(sum, zip(*counted.values(), strict=True))) or [0] * 4, clients
    )
    for group in groups[:_MOST_GROUPS] if len(groups) > 1 else ():
        yield _client_line(group, counted[group], counted[group][0])


def _client_line(name: str, counted: list[int], of: int) -> Text:
    arrived, back, refused, lost = counted
    line = Text(f" {name[:11]:<12}{arrived:>10,}{back:>10,}")
    line.append(f"{refused:>10,}", "yellow" if refused else "")
    line.append(f"{lost:>10,}", "red" if lost else "").append("  ")
    share = min(1.0, back / of) if of else 0.0
    return line.append_text(bar(share, _CLIENTS_BAR, "cyan")).append(f" {share:>4.0%}")


def _pace(pulse: Pulse) -> Iterator[Text]:
    totals = pulse.totals
    ended = sum(Ended.of(totals))
    yield Text(
        f" requests  {totals.started:,} sent, {ended:,} ended, {format_bytes(totals.bytes)} read"
    )
    half, most = pulse.percentile(0.5), pulse.percentile(0.99)
    told = "nothing answered"
    if half is not None and most is not None:
        told = f"p50 {format_seconds(half)}, p99 {format_seconds(most)}"
    yield Text(f" last 5 s  {format_count(pulse.ended_per_second)} a second, {told}")


class ServerRows:
    """Shows what each watched server holds of its limits, and what its process uses.

    Mutable state: processor time over the last seconds, for its growth.
    """

    def __init__(self, samples: Samples, now: Callable[[], float] = time.monotonic) -> None:
        self._samples = samples
        self._now = now
        self._cpu: dict[str, deque[tuple[float, float]]]
        self._cpu = {name: deque() for name in samples.processes}

    def lines(self) -> Iterator[Text]:
        """Yield at most three lines for each server; a figure that nobody tells is left out."""
        for name in self._samples.processes:
            figures = self._samples.figures(name)
            label = name
            for kind in ("heap", "direct"):
                if figures.get(f"{kind}.limit", 0) > 0:
                    yield _bar_line(label, kind, figures)
                    label = ""
            yield _use_line(label, figures, self._busy(name, figures.get("cpu.seconds")))

    def _busy(self, name: str, seconds: float | None) -> float | None:
        """Return how many processors the process kept busy lately."""
        if seconds is None:
            return None
        seen, at = self._cpu[name], self._now()
        seen.append((at, seconds))
        while len(seen) > 2 and seen[1][0] <= at - _CPU_SECONDS:
            seen.popleft()
        before, then = seen[0]
        return (seconds - then) / (at - before) if at > before else None


def _bar_line(label: str, kind: str, figures: Mapping[str, float]) -> Text:
    used, limit = figures.get(f"{kind}.used", 0.0), figures[f"{kind}.limit"]
    waiting = figures.get(f"{kind}.waiting", 0.0)
    share = min(1.0, used / limit)
    line = Text(f" {label:<8}{kind:<7}")
    line.append_text(bar(share, _SERVERS_BAR, "red" if share >= _FULL else "green"))
    line.append(f" {format_bytes(used)} of {format_bytes(limit)}")
    return line.append(f"  {format_count(waiting)} wait" if waiting else "")


def _use_line(label: str, figures: Mapping[str, float], busy: float | None) -> Text:
    parts = []
    if "resident" in figures:
        parts.append(f"memory {format_bytes(figures['resident'])}")
    if "unread" in figures:
        parts.append(f"unread {format_bytes(figures['unread'])}")
    if busy is not None:
        parts.append(f"CPU {busy:.2f}")
    if "descriptors" in figures:
        limit = figures.get("descriptors.limit")
        of = f" of {format_count(limit)}" if limit else ""
        parts.append(f"files {format_count(figures['descriptors'])}{of}")
    return Text(f" {label:<8}{'  '.join(parts) or 'tells nothing'}")


def bar(share: float, width: int, style: str) -> Text:
    """Return a bar that is full to a share; what is more than nothing shows."""
    full = min(width, max(round(share * width), 1 if share > 0 else 0))
    return Text("█" * full, style).append("░" * (width - full), "bright_black")
