"""Rows with the figures of several runs: one row for each measure, one cell for each run."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from loadgen.report.addition import FigureRow, addition_of
from loadgen.results.summary import PROCESSES
from loadgen.scenarios.registry import kind_named
from loadgen.units import MB_BYTES, format_bytes, format_count, format_seconds
from server.server_info import INFO_KEYS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from loadgen.results.restarts import ServerRestart
    from loadgen.results.summary import AccountedMemory, ProcessMemory, RunSummary


NO_ANSWERS = "no answers"
NOT_ACCOUNTED = "no limit"
NOT_TOLD = "not told"
NOT_WATCHED = "not watched"
NOT_MEASURED = "not measured"
SCRAPED = "highest scrape"


def figure_rows(summaries: Sequence[RunSummary]) -> list[FigureRow]:
    """Return all measures of several runs, in the order in which an operator asks for them.

    Args:
        summaries: Runs of one scenario, one column each.
    """
    addition = addition_of(summaries[0])
    return [
        *_client_rows(summaries),
        *(addition.rows(summaries) if addition else ()),
        *_latency_rows(summaries),
        *_memory_rows(summaries),
        *_restart_rows(summaries),
    ]


def _client_rows(summaries: Sequence[RunSummary]) -> Iterator[FigureRow]:
    """Return rows of how every client fared; the kinds of failure only where there was one."""
    each_asked_once = all(s.requests == s.clients for s in summaries)
    group = kind_named(summaries[0].scenario).words.requests or (
        "Clients" if each_asked_once else "Requests"
    )
    yield _row(group, "in all", summaries, lambda s: format_count(s.requests))
    yield _row(group, "answered", summaries, lambda s: format_count(s.answered))
    yield _counts(group, "refused", [summary.refused_total for summary in summaries])
    for reason in sorted({reason for summary in summaries for reason in summary.refused}):
        yield _counts(group, f"  {reason}", [s.refused.get(reason, 0) for s in summaries])
    for kind, meaning in (
        ("wrong", "wrong answer"),
        ("timeout", "no answer in time"),
        ("disconnected", "connection lost"),
        ("unreachable", "could not connect"),
    ):
        counts = [int(getattr(summary, kind)) for summary in summaries]
        if any(counts) or kind == "wrong":
            yield _counts(group, meaning, counts, alarming=True)
    if any(kind_named(summary.scenario).words.lists_topics for summary in summaries):
        yield _row("Each answer", "topics", summaries, lambda s: _span(s.topics_per_answer))
    yield _row("Each answer", "bytes", summaries, lambda s: _span(s.bytes_per_answer, format_bytes))


def _span(extremes: tuple[int, int] | None, write: Callable[[float], str] = format_count) -> str:
    """Write the least and the most of something, or the one figure that both are."""
    if extremes is None:
        return NO_ANSWERS
    least, most = (write(figure) for figure in extremes)
    return least if least == most else f"{least} to {most}"


def _latency_rows(summaries: Sequence[RunSummary]) -> Iterator[FigureRow]:
    """Latency of the answered clients, and where the generator is part of it."""
    group = "Latency of answers"
    for name, statistic in (("median (p50)", "p50"), ("p99", "p99"), ("slowest", "max")):
        cells = [
            format_seconds(getattr(s.latency_seconds, statistic))
            if s.latency_seconds
            else NO_ANSWERS
            for s in summaries
        ]
        yield FigureRow(group, name, cells, [False] * len(cells))
    if any(summary.generator_limited for summary in summaries):
        cells = [lateness(summary) for summary in summaries]
        late = [summary.generator_limited for summary in summaries]
        yield FigureRow(group, "of it: this generator sent late", cells, late)


def lateness(summary: RunSummary) -> str:
    """Return how late the load generator was, where that is more than it may be."""
    if not summary.generator_limited:
        return "in time"
    if summary.generator_limits and not summary.sent_late:
        return "too busy"
    worst = max(summary.start_error_seconds, summary.client_start_error_seconds)
    return f"up to {format_seconds(worst)}"


def _memory_rows(summaries: Sequence[RunSummary]) -> Iterator[FigureRow]:
    """Peaks of each watched process: accounted against the limit, pending, resident."""
    group = "Peak memory"
    watched = [name for name in PROCESSES if any(name in s.processes for s in summaries)]
    for kind in ("heap", "direct"):
        for process in watched:
            write = partial(_against_limit, kind)
            yield _process_row(group, f"{kind}, {process}", summaries, write)
    for process in watched:
        yield _process_row(group, f"answers not yet read, {process}", summaries, _pending)
    for process in watched:
        yield _process_row(group, f"resident over idle, {process}", summaries, _over_idle)
    if len(watched) != 1:
        yield _row(group, "resident over idle, both", summaries, resident_total)
    for what, tell in (("CPU", _cpu), ("descriptors", _descriptors)):
        rows = [_process_row("Use", f"{what}, {name}", summaries, tell) for name in watched]
        yield from (row for row in rows if set(row.cells) - {NOT_MEASURED, NOT_WATCHED})


def _restart_rows(summaries: Sequence[RunSummary]) -> Iterator[FigureRow]:
    """Return a row for each restart of a server while a run lasted, in order of time."""
    for number in range(max(len(summary.restarts) for summary in summaries)):
        cells = [
            _restarted(s.restarts[number]) if number < len(s.restarts) else "none"
            for s in summaries
        ]
        yield FigureRow("Restarts of servers", f"{number + 1}", cells, [False] * len(cells))


def _restarted(restart: ServerRestart) -> str:
    took = format_seconds(restart.ready_seconds - restart.at_seconds)
    again = (
        "not every client was answered again"
        if restart.again_seconds is None
        else f"every client answered again after {format_seconds(restart.again_seconds)}"
    )
    return f"{restart.restart} at {format_seconds(restart.at_seconds)}, ready after {took}; {again}"


def _cpu(memory: ProcessMemory) -> str:
    return NOT_MEASURED if memory.cpu_seconds is None else format_seconds(memory.cpu_seconds)


def _descriptors(memory: ProcessMemory) -> str:
    peak, limit = memory.descriptors_peak, memory.descriptors_limit
    if peak is None:
        return NOT_MEASURED
    return format_count(peak) + (f" of {format_count(limit)}" if limit is not None else "")


def _pending(memory: ProcessMemory) -> str:
    return measured_bytes(memory.outbound_pending_peak_bytes)


def _over_idle(memory: ProcessMemory) -> str:
    scraped = memory.resident_over_first_scrape_bytes
    if memory.resident_over_idle_bytes is None and scraped is not None:
        return f"{_growth(scraped)} ({SCRAPED})"
    return measured_bytes(memory.resident_over_idle_bytes)


def measured_bytes(size_bytes: int | None) -> str:
    """Write a size, or that nobody measured it: an unknown figure is not 0."""
    return NOT_MEASURED if size_bytes is None else format_bytes(size_bytes)


def against_limit(accounted: AccountedMemory) -> str:
    """Write the peak of one kind of memory and its limit, and if the peak is only scraped."""
    peak, limit = measured_bytes(accounted.peak_bytes), format_bytes(accounted.limit_bytes)
    return f"{peak} of {limit}{f' ({SCRAPED})' if accounted.peak_is_scraped else ''}"


def _against_limit(kind: str, memory: ProcessMemory) -> str:
    accounted: AccountedMemory | None = getattr(memory, kind)
    if accounted is None:
        return NOT_ACCOUNTED if memory.tells_accounting else NOT_MEASURED
    return against_limit(accounted)


def resident_total(summary: RunSummary) -> str:
    """Memory over idle of all watched processes together, as text."""
    return " ".join(filter(None, resident_parts(summary)))


def resident_parts(summary: RunSummary) -> tuple[str, str]:
    """Write memory over idle as a figure and a remark, which is empty where it was measured."""
    if not summary.processes:
        return NOT_WATCHED, ""
    if summary.resident_over_idle_bytes is None and summary.resident_scraped_bytes is not None:
        return _growth(summary.resident_scraped_bytes), f"({SCRAPED})"
    return measured_bytes(summary.resident_over_idle_bytes), ""


def _growth(scraped_bytes: int) -> str:
    """Memory over the first scrape; what is not seen there may have been between two."""
    if scraped_bytes < 0.1 * MB_BYTES:
        return "under 0.1 MB"
    return format_bytes(scraped_bytes)


def _process_row(
    group: str,
    measure: str,
    summaries: Sequence[RunSummary],
    write: Callable[[ProcessMemory], str],
) -> FigureRow:
    process = measure.rsplit(" ", 1)[1]

    def cell(summary: RunSummary) -> str:
        memory = summary.processes.get(process)
        return NOT_WATCHED if memory is None else write(memory)

    return _row(group, measure, summaries, cell)


def _row(
    group: str, measure: str, summaries: Sequence[RunSummary], write: Callable[[RunSummary], str]
) -> FigureRow:
    return FigureRow(group, measure, [write(s) for s in summaries], [False] * len(summaries))


def _counts(
    group: str, measure: str, counts: Sequence[int], *, alarming: bool = False
) -> FigureRow:
    return FigureRow(
        group,
        measure,
        [format_count(count) for count in counts],
        [alarming and count > 0 for count in counts],
    )


def server_rows(summaries: Sequence[RunSummary]) -> list[FigureRow]:
    """Return a row for the version and for each key that a server of any run has told."""
    rows = [
        _row("Version", "told to clients", summaries, lambda s: s.server_version or NOT_TOLD),
        _row("Version", "of each server", summaries, lambda s: _told(s, None)),
        *(_row("Keys", key, summaries, partial(_told, key=key)) for key in INFO_KEYS),
    ]
    return [row for row in rows if any(cell != NOT_TOLD for cell in row.cells)]


def _told(summary: RunSummary, key: str | None) -> str:
    """Return a key or the version: once where all servers tell the same, else of each server."""
    told = {
        process: facts.version if key is None else facts.settings.get(key)
        for process, facts in summary.servers.items()
    }
    known = {process: value for process, value in told.items() if value}
    if len(known) == len(told) and len(set(known.values())) == 1:
        return next(iter(known.values()))
    return ", ".join(f"{process} {value}" for process, value in known.items()) or NOT_TOLD
