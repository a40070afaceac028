"""Sentences on the figures of a run, for somebody who sees them for the first time."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from loadgen.report.addition import addition_of
from loadgen.report.figures import against_limit
from loadgen.report.hidden_effect import hidden_effect
from loadgen.results.generator import (
    CLIENT_START_ERROR_LIMIT_SECONDS,
    START_ERROR_LIMIT_SECONDS,
)
from loadgen.scenarios.registry import kind_named
from loadgen.units import format_bytes, format_seconds, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadgen.results.summary import ProcessMemory, Run, RunSummary

# A difference smaller than this is not worth a sentence.
_WORTH_SAYING = 1.5


def headline(summaries: Sequence[RunSummary]) -> str:
    """Say in one sentence how far apart the hungriest and the most frugal run are.

    Runs of a scenario with a headline of its own have that; runs of several do not compare.
    """
    addition = addition_of(summaries[0])
    if addition is not None:
        return addition.headline(summaries)
    kinds = Counter(summary.scenario for summary in summaries)
    watched = [s for s in summaries if s.resident_over_idle_bytes is not None]
    if len(watched) < 2 or len(kinds) > 1:
        named = (f"{plural(n, 'run')} of {kind_named(k).words.name}" for k, n in kinds.items())
        return f"{', '.join(named)}."
    most = max(watched, key=_over_idle)
    # A run that refused its clients needs little memory: that is no thrift to boast of.
    kind = [s for s in watched if s.refused_total == 0 and s.failed == 0] or watched
    least = min(kind, key=_over_idle)
    ratio = _over_idle(most) / max(1, _over_idle(least))
    if ratio < _WORTH_SAYING:
        return "All runs needed about the same memory."
    return (
        f"The same clients, the same topics: “{most.label}” took "
        f"{format_bytes(_over_idle(most))} of memory over idle, “{least.label}” took "
        f"{format_bytes(_over_idle(least))} and answered {least.answered:,} of {least.asked}."
    )


def run_sentences(summary: RunSummary) -> list[str]:
    """Say what one run shows: who was served, how long it took, what it cost the servers."""
    addition = addition_of(summary)
    return [
        _served(summary),
        *(addition.sentences(summary) if addition else ()),
        *_latency(summary),
        *_accounting(summary),
        *_pending(summary),
        *_resident(summary),
        *_doubts(summary),
    ]


def scenario_sentence(run: Run) -> str:
    """Say what each client of a run did, from the scenario that its directory keeps."""
    try:
        return kind_named(run.summary.scenario).words.describe(run.description["scenario"])
    except (KeyError, TypeError):  # a directory of another version
        return "What was run is listed below."


def late_start_sentence(summary: RunSummary) -> str:
    """Say why the latencies of a run are partly the load generator's own."""
    if summary.generator_limits and not summary.sent_late:
        return (
            f"The load generator was the limit: {'; '.join(summary.generator_limits)}. Latencies "
            "include its own delays; counts and memory figures hold."
        )
    if summary.start_error_seconds > START_ERROR_LIMIT_SECONDS:
        who, late, limit = "began", summary.start_error_seconds, START_ERROR_LIMIT_SECONDS
    else:
        who, late = "sent its last request", summary.client_start_error_seconds
        limit = CLIENT_START_ERROR_LIMIT_SECONDS
    return (
        f"The load generator {who} {format_seconds(late)} late (over {format_seconds(limit)}), as "
        "this machine was busy. Latencies count from the intended start, so they include that "
        "delay; counts and memory figures hold."
    )


def _over_idle(summary: RunSummary) -> int:
    return summary.resident_over_idle_bytes or 0


def _served(summary: RunSummary) -> str:
    got = kind_named(summary.scenario).words.got
    if summary.answered == summary.requests:
        return f"All {summary.asked} {got}; none was refused."
    parts = [f"{summary.answered:,} of {summary.asked} {got}"]
    if summary.refused_total:
        most = max(summary.refused, key=lambda reason: summary.refused[reason])
        parts.append(f"{summary.refused_total:,} were refused, mostly with “{most}”")
    if summary.failed:
        parts.append(f"{summary.failed:,} got no valid answer at all")
    return f"{'; '.join(parts)}."


def _latency(summary: RunSummary) -> Iterator[str]:
    latency = summary.latency_seconds
    if latency is not None:
        yield (
            f"Half of the answers were complete after {format_seconds(latency.p50)}, "
            f"the slowest after {format_seconds(latency.max)}."
        )


def _accounting(summary: RunSummary) -> Iterator[str]:
    """Say how the accounted memory stood to its limit."""
    if not summary.processes:
        yield "The servers' own figures were not read in this run."
        return
    if not any(memory.tells_accounting for memory in summary.processes.values()):
        yield "Accounted memory was not measured: the servers show no figures of a limiter."
        return
    if all(m.heap is None and m.direct is None for m in summary.processes.values()):
        yield "Nothing was accounted: with limits of 0 the servers take whatever comes."
        return
    peaks = [text for name, m in summary.processes.items() if (text := _peaks(name, m))]
    yield f"Accounted memory peaked at {' and '.join(peaks)}."
    timeouts = sum(
        (m.heap_timeouts or 0) + (m.direct_timeouts or 0) for m in summary.processes.values()
    )
    if timeouts:
        yield f"Requests gave up waiting for memory {plural(timeouts, 'time')} on the servers."


def _peaks(process: str, memory: ProcessMemory) -> str:
    kinds = [
        f"{against_limit(part)} {kind}"
        for kind, part in (("heap", memory.heap), ("direct", memory.direct))
        if part is not None
    ]
    return f"{', '.join(kinds)} in the {process}" if kinds else ""


def _pending(summary: RunSummary) -> Iterator[str]:
    peaks = [
        f"{format_bytes(memory.outbound_pending_peak_bytes)} in the {name}"
        for name, memory in summary.processes.items()
        if memory.outbound_pending_peak_bytes is not None
    ]
    if peaks:
        words = f"Answers that clients had not read yet: up to {' and '.join(peaks)}"
        if (summary.outbound_pending_peak_bytes or 0) > _WORTH_SAYING * _over_idle(summary):
            words += ", counted for each connection; connections that share a copy need it once"
        yield f"{words}."


def _resident(summary: RunSummary) -> Iterator[str]:
    total = summary.resident_over_idle_bytes
    if total is not None:
        parts = [
            f"{name} {format_bytes(memory.resident_over_idle_bytes or 0)}"
            for name, memory in summary.processes.items()
        ]
        yield f"Over idle the processes needed {format_bytes(total)} ({', '.join(parts)})."
    elif summary.processes:
        scraped = summary.resident_scraped_bytes
        if scraped is None:
            yield (
                "Memory over idle was not measured: that needs the servers' process ids, and "
                "virtual time has no processes."
            )
        else:
            yield (
                f"Over their first scrape the processes needed up to {format_bytes(scraped)}; "
                "what lies between two scrapes only their process ids would show."
            )


def _doubts(summary: RunSummary) -> Iterator[str]:
    if summary.interrupted:
        yield (
            f"The run was interrupted: these are the {summary.requests:,} requests of "
            f"{plural(summary.clients, 'client')} that had ended by then."
        )
    hidden = hidden_effect(summary)
    if hidden is not None:
        yield hidden
    if summary.generator_limited:
        yield late_start_sentence(summary)
    if summary.wrong:
        yield f"{plural(summary.wrong, 'answer')} did not hold the right topics: that is a bug."
