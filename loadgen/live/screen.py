"""One screen of 80 by 24 about a run that goes on: its clients, its pace, its servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from loadgen.clients.records import FamilyCounters
from loadgen.live.servers import bar
from loadgen.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadgen.clients.records import RequestCounters
    from loadgen.live.pulse import Pulse
    from loadgen.live.servers import ServerRows

COLUMNS = 80
ROWS = 24
_MOST_FAMILIES = 6
_BAR = 20


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
    if totals.phase:
        return totals.phase
    if not totals.connected and not totals.started:
        return first
    if not totals.started:
        return f"connected {totals.connected:,} of {clients:,}"
    return "running"


def _heading(title: str, first: str, clients: int, pulse: Pulse) -> Text:
    seconds = pulse.seconds
    phase = phase_of(pulse, clients, first)
    right = phase if seconds is None else f"{phase}  {seconds:.0f} s"
    room = COLUMNS - len(right) - 3
    left = title if len(title) <= room else f"{title[: room - 1]}…"
    return Text(f" {left:<{room}} ", "bold").append(f"{right} ", "cyan")


def _client_lines(clients: int, totals: RequestCounters) -> Iterator[Text]:
    """Yield a line for all clients, and one for each family where they have families."""
    heads = (f"{head:>10}" for head in ("arrived", "back", "refused", "lost"))
    yield Text(f" {'':<12}{''.join(heads)}", "bright_black")
    families = totals.families
    everyone = FamilyCounters(totals.started, totals.answered, totals.refused, totals.lost)
    if families:
        everyone = FamilyCounters()
        for each in families.values():
            everyone.arrived += each.arrived
            everyone.back += each.back
            everyone.refused += each.refused
            everyone.lost += each.lost
    yield _client_line("all", everyone, clients)
    for name in sorted(families)[:_MOST_FAMILIES] if len(families) > 1 else ():
        yield _client_line(name, families[name], families[name].arrived)


def _client_line(name: str, counted: FamilyCounters, of: int) -> Text:
    line = Text(f" {name[:11]:<12}{counted.arrived:>10,}{counted.back:>10,}")
    line.append(f"{counted.refused:>10,}", "yellow" if counted.refused else "")
    line.append(f"{counted.lost:>10,}", "red" if counted.lost else "").append("  ")
    share = min(1.0, counted.back / of) if of else 0.0
    return line.append_text(bar(share, _BAR, "cyan")).append(f" {share:>4.0%}")


def _pace(pulse: Pulse) -> Iterator[Text]:
    totals = pulse.totals
    ended = totals.answered + totals.refused + totals.lost
    yield Text(
        f" requests  {totals.started:,} sent, {ended:,} ended, {format_bytes(totals.bytes)} read"
    )
    half, most = pulse.percentile(0.5), pulse.percentile(0.99)
    told = "nothing answered"
    if half is not None and most is not None:
        told = f"p50 {format_seconds(half)}, p99 {format_seconds(most)}"
    yield Text(f" last 5 s  {format_count(pulse.ended_per_second)} a second, {told}")
