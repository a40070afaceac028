"""The rows of a run's table that only scenarios with non-reading clients have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadgen.report.addition import FigureRow
from loadgen.report.stuck.words import words_of
from loadgen.units import format_bytes, format_count, format_seconds, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from loadgen.results.silent import SilentFigures
    from loadgen.results.stuck import Phase, StuckFigures
    from loadgen.results.summary import RunSummary

NO_PEERS = "there were none"
NOTHING_DUE = "nothing due"


def stuck_rows(summaries: Sequence[RunSummary]) -> Iterator[FigureRow]:
    """Return rows of what non-reading clients did; none where no run had any."""
    if any(summary.stuck is not None for summary in summaries):
        yield from _while_stuck(summaries)
        yield from _latencies(summaries)
        yield from _peers(summaries)
        yield from _silent(summaries)


def _while_stuck(summaries: Sequence[RunSummary]) -> Iterator[FigureRow]:
    group = f"While {words_of(summaries[0]).there}"
    for measure, write in (
        (f"{_requests(summaries)} due", lambda figures: format_count(figures.stuck.requests)),
        ("answered in that time", lambda figures: format_count(figures.stuck.answered_in_phase)),
        ("refused", lambda figures: format_count(figures.stuck.refused)),
        ("answered later", lambda f: format_count(f.stuck.answered_afterwards)),
        ("time without any answer", nobody_answered),
        ("latency of the first answer", _first_answer),
    ):
        yield _row(group, measure, summaries, write)


def _latencies(summaries: Sequence[RunSummary]) -> Iterator[FigureRow]:
    group, words = f"Latency of all {_requests(summaries)}, p50 and p99", words_of(summaries[0])
    for measure, write in (
        ("before", lambda figures: phase_latency(figures.before)),
        (f"while {words.there}", lambda figures: phase_latency(figures.stuck)),
        ("after", lambda figures: phase_latency(figures.after)),
    ):
        yield _row(group, measure, summaries, write)


def _peers(summaries: Sequence[RunSummary]) -> Iterator[FigureRow]:
    group = f"{words_of(summaries[0]).peer}s".capitalize()
    found = [summary.stuck for summary in summaries if summary.stuck is not None]
    if not any(summary.silent for summary in summaries):
        yield _row(group, "in all", summaries, _in_all)
    if any(figures.unreachable for figures in found):
        yield _row(group, "could not connect", summaries, lambda f: format_count(f.unreachable))
    if any(figures.bytes_read for figures in found):
        yield _row(group, "read in all", summaries, lambda f: format_bytes(f.bytes_read))
    yield _row(group, "closed by the server", summaries, closed_peers)
    yield _row(
        group, "other connections lost", summaries, lambda f: format_count(f.connections_lost)
    )


def _silent(summaries: Sequence[RunSummary]) -> Iterator[FigureRow]:
    group = "Silent producers"
    found = [summary.silent for summary in summaries]
    if not any(found):
        return
    for measure, write in (
        ("taken from them", taken),
        ("held up at the end", lambda f: f"{f.producers_held_up:,} of {f.producers:,}"),
    ):
        cells = ["" if figures is None else write(figures) for figures in found]
        yield FigureRow(group, measure, cells, [False] * len(cells))


def taken(figures: SilentFigures) -> str:
    """Say how much of what silent producers had was taken from them."""
    return f"{figures.messages_sent:,} of {plural(figures.messages_wanted, 'message')}"


def _requests(summaries: Sequence[RunSummary]) -> str:
    """Return what the runs' healthy clients sent, in the plural."""
    return f"{words_of(summaries[0]).request}s"


def _in_all(figures: StuckFigures) -> str:
    if not figures.peers:
        return "0"
    return f"{figures.peers:,} x {figures.pipelined:,} listings"


def nobody_answered(figures: StuckFigures) -> str:
    """Say how long no healthy client was answered, from the first listing due beside the peers."""
    return _since_they_asked(figures, figures.nobody_answered_seconds)


def _first_answer(figures: StuckFigures) -> str:
    """Say how long the first answer beside the peers took."""
    return _since_they_asked(figures, figures.first_answer_latency_seconds)


def _since_they_asked(figures: StuckFigures, seconds: float | None) -> str:
    if figures.asked_seconds is None:
        return NO_PEERS
    return "none came" if seconds is None else format_seconds(seconds)


def closed_peers(figures: StuckFigures) -> str:
    """Say how many non-reading clients the server closed, and when the first and the last."""
    first, last = figures.first_closed_after_seconds, figures.last_closed_after_seconds
    if first is None or last is None:
        return "none" if figures.peers else NO_PEERS
    moments = format_seconds(first)
    if figures.closed > 1:
        moments += f" to {format_seconds(last)}"
    return f"{figures.closed:,} after {moments}"


def phase_latency(phase: Phase) -> str:
    """Median and p99 of what was due in a phase; a refusal is told as what it is."""
    if not phase.requests:
        return NOTHING_DUE
    unanswered = "not answered" if phase.failed else "refused"
    if phase.p50_seconds is None:
        return f"both {unanswered}"
    p99 = phase.p99_seconds
    last = unanswered if p99 is None else format_seconds(p99)
    return f"{format_seconds(phase.p50_seconds)}, {last}"


def _row(
    group: str,
    measure: str,
    summaries: Sequence[RunSummary],
    write: Callable[[StuckFigures], str],
) -> FigureRow:
    cells = ["" if s.stuck is None else write(s.stuck) for s in summaries]
    return FigureRow(group, measure, cells, [False] * len(cells))
