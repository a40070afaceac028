"""The checks of the demo's storms: one sentence with figures each."""

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
        _every_client_heard(summaries),
        _none_refused(floodgate),
        _within_limits(summaries),
        _everything_returned(summaries),
        _effect_visible(off, size),
        _memory_ratio(off, floodgate, size),
        _broker_over_idle(floodgate),
    ]


def own_checks(runs: Mapping[str, RunSummary]) -> list[CheckResult]:
    """Judge whether the figures of a rehearsal can be relied on.

    What they say of the operator's cluster is nobody's to judge, neither refusals nor memory.
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
        f"This storm is small: without limits at most {format_bytes(peak)} of the "
        f"{format_bytes(size.clients * size.answer_bytes)} of answers waited in one server. Use "
        "a larger --namespace, as the kernel's socket buffers take the first of each answer, more "
        "--clients or a lower --read-rate to see what limits do."
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
        f"{s.name} {format_count(s.answered)} + {format_count(s.refused_total)}"
        f"{f' and {s.failed:,} neither' if s.failed else ''} of {format_count(s.clients)}"
        for s in summaries
    )
    claim = (
        "Every client was answered or refused, and no answer was wrong"
        if passed
        else "Some clients got neither an answer nor a refusal, or a wrong answer"
    )
    return CheckResult("every_client_heard", passed, f"{claim}: {figures}.")


def _none_refused(floodgate: RunSummary) -> CheckResult:
    refused = floodgate.refused_total
    if not refused:
        sentence = f"floodgate refused none of its {plural(floodgate.clients, 'client')}."
    else:
        sentence = (
            f"floodgate refused {refused:,} of {plural(floodgate.clients, 'client')}; "
            "it should refuse none."
        )
    return CheckResult("floodgate_refuses_none", not refused, sentence)


def _within_limits(summaries: Sequence[RunSummary]) -> CheckResult:
    parts = list(_accounted(summaries))
    over = [part for part in parts if _share(part) > 1]
    if not parts:
        return CheckResult(
            "within_limits", False, "No run accounted for any memory, so no limit was shown."
        )
    if any(part[3].high_water_bytes is None for part in parts):
        return CheckResult("within_limits", False, "The servers' high-water marks are not known.")
    if over:
        named = ", ".join(_peak(part) for part in over)
        return CheckResult("within_limits", False, f"Memory passed its limit: {named}.")
    highest = max(parts, key=_share)
    return CheckResult(
        "within_limits",
        True,
        f"Heap and direct memory stayed at or under their limits in every limited run; the "
        f"highest was {_peak(highest)}.",
    )


def _everything_returned(summaries: Sequence[RunSummary]) -> CheckResult:
    parts = list(_accounted(summaries))
    left = [part for part in parts if part[3].final_bytes != 0]
    if not left:
        sentence = "All accounted bytes were given back by the end of every run."
    else:
        named = ", ".join(
            f"{'unknown' if memory.final_bytes is None else format_count(memory.final_bytes)} "
            f"bytes of {kind} in the {process} ({run.name})"
            for run, process, kind, memory in left
        )
        sentence = f"Accounted bytes were not given back at the end: {named}."
    return CheckResult("everything_returned", not left, sentence)


def _effect_visible(off: RunSummary, size: StormSize) -> CheckResult:
    peak, required = off.outbound_pending_peak_bytes or 0, size.required_pending_bytes
    passed = peak >= required
    found = f"without limits up to {format_bytes(peak)} of answers waited in one server"
    sentence = (
        f"The effect is visible: {found} (at least {format_bytes(required)} needed)."
        if passed
        else f"The effect was hidden: {found}, under the {format_bytes(required)} needed. Ask for "
        "larger namespaces (fewer --namespaces), more --clients or a lower --read-rate."
    )
    return CheckResult("effect_visible", passed, sentence)


def _memory_ratio(off: RunSummary, floodgate: RunSummary, size: StormSize) -> CheckResult:
    most, least = off.resident_over_idle_bytes, floodgate.resident_over_idle_bytes
    if most is None or least is None:
        return CheckResult("memory_ratio", False, "The servers' memory was not measured.")
    ratio = most / max(1, least)
    figures = (
        f"broker and proxy together took {format_bytes(most)} over idle without limits and "
        f"{format_bytes(least)} in floodgate, {ratio:.1f} times as much"
    )
    if not size.judges_memory:
        return CheckResult(
            "memory_ratio", True, f"Too small a storm to judge the memory ratio: {figures}."
        )
    passed = ratio >= MEMORY_RATIO
    claim = "Floodgate saves memory" if passed else "Floodgate saves too little memory"
    return CheckResult(
        "memory_ratio", passed, f"{claim}: {figures} (at least {MEMORY_RATIO:g} needed)."
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
        f"The broker in floodgate took {format_bytes(over)} over idle"
        f"{'' if passed else ', which is too much'} "
        f"(at most {format_bytes(BROKER_OVER_IDLE_BYTES)} allowed).",
    )


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
    return f"{against_limit(memory)} {kind} in the {process} ({run.name})"


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
    claim = (
        "One peer that reads nothing starves everybody in pulsar"
        if passed
        else "One peer that reads nothing should starve everybody in pulsar"
    )
    return CheckResult(
        "stuck_starves_pulsar",
        passed,
        f"{claim}: of {plural(phase.requests, 'listing')} due while it was there "
        f"{phase.answered_in_phase:,} were answered meanwhile and {phase.refused:,} refused, "
        f"to {phase.clients_refused:,} of {plural(run.clients, 'client')}; nobody was "
        f"answered for {nobody_answered(figures)}.",
    )


def _back_when_it_left(run: RunSummary) -> CheckResult:
    after = _figures(run).after
    passed = bool(after.requests) and after.answered == after.requests
    return CheckResult(
        "stuck_leaves_pulsar",
        passed,
        f"When it left, {after.answered:,} of {plural(after.requests, 'listing')} due afterwards "
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
        f"Beside the same peer floodgate answered {run.answered:,} of "
        f"{plural(run.requests, 'listing')} and refused {run.refused_total:,}; "
        f"{plural(lost, 'healthy connection')} lost, the slowest answer took "
        f"{_slowest(run)}.",
    )


def _slowest(run: RunSummary) -> str:
    return format_seconds(run.latency_seconds.max) if run.latency_seconds else "for ever"


def _figures(run: RunSummary) -> StuckFigures:
    assert run.stuck is not None, run.name
    return run.stuck
