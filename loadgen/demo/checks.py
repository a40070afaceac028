"""The checks of the demo: one sentence with figures each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadgen.errors import ExitCode
from loadgen.report.figures import against_limit
from loadgen.report.stuck.figures import nobody_answered
from loadgen.results.checks import CheckResult
from loadgen.results.summary import RunSummary
from loadgen.units import MB_BYTES, format_bytes, format_count, format_seconds, plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from loadgen.demo.plan import StormSize
    from loadgen.results.stuck import StuckFigures
    from loadgen.results.summary import AccountedMemory


MEMORY_RATIO = 5.0
BROKER_OVER_IDLE_BYTES = 64 * MB_BYTES

Accounted = tuple[RunSummary, str, str, "AccountedMemory"]


def demo_checks(runs: Mapping[str, RunSummary], size: StormSize) -> list[CheckResult]:
    """Judge the runs ``off``, ``pulsar`` and ``floodgate``."""
    summaries = list(runs.values())
    off, floodgate = runs["off"], runs["floodgate"]
    return [
        _effect_visible(off, size),
        *_refusals_reproduced(runs["pulsar"]),
        _every_client_heard(summaries),
        _none_refused(floodgate),
        _within_limits(summaries),
        _everything_returned(summaries),
        _memory_ratio(off, floodgate, size),
        _broker_over_idle(floodgate),
    ]


def own_checks(runs: Mapping[str, RunSummary]) -> list[CheckResult]:
    """Judge whether the figures of a rehearsal can be relied on.

    Refusals and memory are reported, not judged: only the operator knows what is acceptable.
    """
    summaries = list(runs.values())
    limited = any(_accounted(summaries))
    return [
        _every_client_heard(summaries),
        *([_within_limits(summaries)] if limited else []),
        _everything_returned(summaries),
    ]


def hidden_storm(off: RunSummary, size: StormSize) -> str | None:
    """Say why a rehearsal without limits shows too little to compare with; None if it does not."""
    peak, required = off.outbound_pending_peak_bytes or 0, size.required_pending_bytes
    if peak >= required:
        return None
    return (
        f"This storm is too small to show what limits do: without limits at most "
        f"{format_bytes(peak)} of the {format_bytes(size.clients * size.answer_bytes)} of topic "
        "lists waited in one server. Use a larger --namespace (the kernel's socket buffers hold "
        "the beginning of each list), more --clients or a lower --read-rate."
    )


def exit_code(runs: Iterable[RunSummary], checks: Sequence[CheckResult]) -> ExitCode:
    """Return the code of the whole demo: a wrong answer weighs more than a failed check."""
    if any(summary.wrong for summary in runs):
        return ExitCode.CORRECTNESS
    if not all(check.passed for check in checks):
        return ExitCode.THRESHOLDS
    return ExitCode.PASSED


def _every_client_heard(summaries: Sequence[RunSummary]) -> CheckResult:
    passed = all(
        summary.answered + summary.refused_total == summary.clients and not summary.failed
        for summary in summaries
    )
    figures = "; ".join(
        f"{_quoted(s)} {plural(s.answered, 'list')}"
        f"{f', {s.refused_total:,} refused' if s.refused_total else ''}"
        f"{f', {s.failed:,} failed' if s.failed else ''}"
        for s in summaries
    )
    claim = (
        "Every client got a topic list or a refusal, and no list was wrong"
        if passed
        else "Some clients got neither a topic list nor a refusal, or a wrong list"
    )
    return CheckResult("every_client_heard", passed, f"{claim}: {figures}.")


def _none_refused(floodgate: RunSummary) -> CheckResult:
    refused = floodgate.refused_total
    if not refused:
        sentence = f"Floodgate refused none of {plural(floodgate.clients, 'client')}."
    else:
        sentence = (
            f"Floodgate refused {refused:,} of {plural(floodgate.clients, 'client')}; "
            "it should refuse none."
        )
    return CheckResult("floodgate_refuses_none", not refused, sentence)


def _within_limits(summaries: Sequence[RunSummary]) -> CheckResult:
    parts = list(_accounted(summaries))
    over = [part for part in parts if _share(part) > 1]
    if not parts:
        return CheckResult(
            "within_limits", False, "No server counted any memory, so no limit was shown."
        )
    if any(part[3].high_water_bytes is None for part in parts):
        return CheckResult("within_limits", False, "The servers did not report their peaks.")
    if over:
        named = ", ".join(_peak(part) for part in over)
        return CheckResult("within_limits", False, f"Memory exceeded its limit: {named}.")
    highest = max(parts, key=_share)
    return CheckResult(
        "within_limits",
        True,
        f"Heap and direct memory stayed within their limits in every limited run; the highest "
        f"peak was {_peak(highest)}.",
    )


def _everything_returned(summaries: Sequence[RunSummary]) -> CheckResult:
    parts = list(_accounted(summaries))
    left = [part for part in parts if part[3].final_bytes != 0]
    if not left:
        sentence = "The limiters had released all memory by the end of every run."
    else:
        named = ", ".join(
            f"{'unknown' if memory.final_bytes is None else format_count(memory.final_bytes)} "
            f"bytes of {kind} in the {process} of {_quoted(run)}"
            for run, process, kind, memory in left
        )
        sentence = f"The limiters had not released all memory at the end: {named}."
    return CheckResult("everything_returned", not left, sentence)


def _effect_visible(off: RunSummary, size: StormSize) -> CheckResult:
    peak, required = off.outbound_pending_peak_bytes or 0, size.required_pending_bytes
    passed = peak >= required
    found = (
        f"without limits up to {format_bytes(peak)} of topic lists waited in one server for slow "
        "clients"
    )
    sentence = (
        f"Reproduced: {found} (at least {format_bytes(required)} expected)."
        if passed
        else f"Not reproduced: {found}, less than the {format_bytes(required)} expected. Use "
        "larger namespaces (fewer --namespaces), more --clients or a lower --read-rate."
    )
    return CheckResult("effect_visible", passed, sentence, neutral=True)


def _refusals_reproduced(pulsar: RunSummary) -> list[CheckResult]:
    """Return what Pulsar's limits refused; nothing where they refused nobody."""
    refused = pulsar.refused_total
    if not refused:
        return []
    sentence = (
        f"Reproduced: with limits as in Pulsar {refused:,} of "
        f"{plural(pulsar.clients, 'client')} were refused."
    )
    return [CheckResult("pulsar_refuses", True, sentence, neutral=True)]


def _memory_ratio(off: RunSummary, floodgate: RunSummary, size: StormSize) -> CheckResult:
    most, least = off.resident_over_idle_bytes, floodgate.resident_over_idle_bytes
    if most is None or least is None:
        return CheckResult("memory_ratio", False, "The servers' memory was not measured.")
    ratio = most / max(1, least)
    figures = (
        f"broker and proxy together grew by {format_bytes(most)} without limits and by "
        f"{format_bytes(least)} with Floodgate, a ratio of {ratio:.1f}"
    )
    if not size.judges_memory:
        return CheckResult(
            "memory_ratio",
            True,
            f"Not judged, as the storm is too small for it: {figures}.",
            judged=False,
        )
    passed = ratio >= MEMORY_RATIO
    claim = "Floodgate saves memory" if passed else "Floodgate saves too little memory"
    return CheckResult(
        "memory_ratio", passed, f"{claim}: {figures} (at least {MEMORY_RATIO:g} expected)."
    )


def _broker_over_idle(floodgate: RunSummary) -> CheckResult:
    broker = floodgate.processes.get("broker")
    over = broker.resident_over_idle_bytes if broker else None
    if over is None:
        return CheckResult("broker_over_idle", False, "The broker's memory was not measured.")
    passed = over <= BROKER_OVER_IDLE_BYTES
    return CheckResult(
        "broker_over_idle",
        passed,
        f"Floodgate's broker alone grew by {format_bytes(over)}"
        f"{'' if passed else ', which is too much'} "
        f"(at most {format_bytes(BROKER_OVER_IDLE_BYTES)} expected).",
    )


def _quoted(run: RunSummary) -> str:
    """Return the name of a run as its column in the table has it."""
    return f"“{run.label}”"


def _accounted(summaries: Sequence[RunSummary]) -> Iterator[Accounted]:
    """Yield every kind of memory that any process of any run accounted for."""
    for summary in summaries:
        for process, memory in summary.processes.items():
            for kind, part in (("heap", memory.heap), ("direct", memory.direct)):
                if part is not None:
                    yield summary, process, kind, part


def _share(part: Accounted) -> float:
    """Return the peak as a share of the limit."""
    return (part[3].peak_bytes or 0) / part[3].limit_bytes


def _peak(part: Accounted) -> str:
    run, process, kind, memory = part
    return f"{against_limit(memory)} {kind} in the {process} of {_quoted(run)}"


def stuck_checks(runs: Mapping[str, RunSummary]) -> list[CheckResult]:
    """Judge the runs ``stuck-pulsar`` and ``stuck-floodgate``."""
    pulsar, floodgate = runs["stuck-pulsar"], runs["stuck-floodgate"]
    return [
        _starves_everybody(pulsar),
        _back_when_it_left(pulsar),
        _harms_nobody(floodgate),
    ]


def _starves_everybody(run: RunSummary) -> CheckResult:
    figures = _figures(run)
    phase = figures.stuck
    passed = (
        bool(phase.requests)
        and not phase.answered_in_phase
        and not phase.failed
        and phase.clients_refused == run.clients
    )
    claim = "Reproduced" if passed else "Not reproduced"
    return CheckResult(
        "stuck_starves_pulsar",
        passed,
        f"{claim}: as in Pulsar, one client that reads nothing blocks all others. Of "
        f"{plural(phase.requests, 'listing')} due while it was connected, "
        f"{phase.answered_in_phase:,} were answered in that time and {phase.refused:,} refused, "
        f"to {phase.clients_refused:,} of {plural(run.clients, 'client')}; the time without any "
        f"answer was {nobody_answered(figures)}.",
        neutral=True,
    )


def _back_when_it_left(run: RunSummary) -> CheckResult:
    after = _figures(run).after
    passed = bool(after.requests) and after.answered == after.requests
    return CheckResult(
        "stuck_leaves_pulsar",
        passed,
        f"After it had disconnected, {after.answered:,} of {plural(after.requests, 'listing')} "
        "were answered.",
    )


def _harms_nobody(run: RunSummary) -> CheckResult:
    figures = _figures(run)
    phase = figures.stuck
    lost = figures.connections_lost
    passed = bool(phase.requests) and run.answered == run.requests and not lost
    return CheckResult(
        "stuck_harms_nobody_in_floodgate",
        passed,
        f"Beside the same client Floodgate answered {run.answered:,} of "
        f"{plural(run.requests, 'listing')} and refused {run.refused_total:,}; "
        f"{plural(lost, 'other connection')} lost; slowest answer: {_slowest(run)}.",
    )


def _slowest(run: RunSummary) -> str:
    return format_seconds(run.latency_seconds.max) if run.latency_seconds else "no answer"


def _figures(run: RunSummary) -> StuckFigures:
    assert run.stuck is not None, run.name
    return run.stuck
