"""Checks of the demo's runs: whether each figure is as it is to be, a sentence each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadgen.studies.demo_figures import OVER_IDLE, silence
from loadgen.units import MB_BYTES, format_bytes, format_count, format_seconds, plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadgen.studies.demo_figures import Figures

MEMORY_RATIO = 5.0
BROKER_OVER_IDLE_BYTES = 64 * MB_BYTES
# The size at which the demo was thought out: a thousand answers of a million bytes.
FULL_STORM_BYTES, FULL_PENDING_BYTES = 1_000_000_000, 300 * MB_BYTES
# Under this share of the full storm, memory that has nothing to do with answers hides the ratio.
JUDGED_SHARE = 0.5


@dataclass(frozen=True)
class Check:
    """A sentence with what was found, and what is expected.

    Attributes:
        neutral: True of a fault of Pulsar, which is reproduced, not praised.
        judged: False where a run is too small to judge by.
    """

    name: str
    passed: bool
    sentence: str
    neutral: bool = False
    judged: bool = True

    @property
    def mark(self) -> str:
        """How it came out, in one character."""
        if not self.passed:
            return "✗"
        return "–" if not self.judged else "!" if self.neutral else "✓"  # noqa: RUF001


def share_of_full(asked_bytes: int) -> float:
    """Return all answers of a storm as a share of the full demo's, at most 1."""
    return min(1.0, asked_bytes / FULL_STORM_BYTES)


def required_unread(asked_bytes: int) -> int:
    """Return how much must wait unread in the run without limits for it to show anything."""
    return round(FULL_PENDING_BYTES * share_of_full(asked_bytes))


def demo_checks(runs: Mapping[str, Figures], asked_bytes: int) -> list[Check]:
    """Judge the runs ``off``, ``pulsar`` and ``floodgate``, which each ask for so many bytes."""
    pulsar, floodgate = runs["pulsar"].total, runs["floodgate"].total
    reproduced = [
        Check(
            "pulsar_refuses",
            True,
            f"Reproduced: with limits as in Pulsar {pulsar.refused:,} of "
            f"{plural(pulsar.requests, 'client')} were refused.",
            neutral=True,
        )
    ]
    return [
        _effect_visible(runs["off"], asked_bytes),
        *(reproduced if pulsar.refused else ()),
        _every_client_heard(list(runs.values())),
        Check(
            "floodgate_refuses_none",
            not floodgate.refused,
            f"Floodgate refused {floodgate.refused:,} of {plural(floodgate.requests, 'client')} "
            "(none expected).",
        ),
        _within_limits(list(runs.values())),
        _everything_returned(list(runs.values())),
        _memory_ratio(runs["off"], runs["floodgate"], asked_bytes),
        _broker_over_idle(runs["floodgate"]),
    ]


def own_checks(runs: Mapping[str, Figures]) -> list[Check]:
    """Judge whether the figures of a rehearsal can be relied on.

    Refusals and memory are reported, not judged: only the operator knows what is acceptable.
    """
    found = list(runs.values())
    limited = [_within_limits(found)] if any(run.limited for run in found) else []
    return [_every_client_heard(found), *limited, _everything_returned(found)]


def hidden_storm(off: Figures, asked_bytes: int) -> str | None:
    """Say why a rehearsal without limits shows too little to compare with; None if it does not."""
    if off.unread >= required_unread(asked_bytes):
        return None
    return (
        f"This storm is too small to show what limits do: without limits at most "
        f"{format_bytes(off.unread)} of the {format_bytes(asked_bytes)} of "
        "topic lists waited in one server. Use a larger --namespace (the kernel's socket buffers "
        "hold the beginning of each list), more --clients or a lower --read-rate."
    )


def _effect_visible(off: Figures, asked_bytes: int) -> Check:
    passed = off.unread >= required_unread(asked_bytes)
    sentence = (
        f"{'Reproduced' if passed else 'Not reproduced'}: without limits up to "
        f"{format_bytes(off.unread)} of topic lists waited in one server for slow clients (at "
        f"least {format_bytes(required_unread(asked_bytes))} expected)."
    )
    if not passed:
        sentence += (
            " Use larger namespaces (fewer --namespaces), more --clients or a lower --read-rate."
        )
    return Check("effect_visible", passed, sentence, neutral=True)


def _every_client_heard(runs: Sequence[Figures]) -> Check:
    counts = "; ".join(
        f"“{run.label}” {plural(run.total.answered, 'list')}"
        + (f", {run.total.refused:,} refused" if run.total.refused else "")
        + (f", {run.failed:,} failed" if run.failed else "")
        for run in runs
    )
    sentence = f"Each client is to get a right topic list or a refusal: {counts}."
    return Check("every_client_heard", not any(run.failed for run in runs), sentence)


def _within_limits(runs: Sequence[Figures]) -> Check:
    shares = {
        f"{format_bytes(held.most)} of {format_bytes(held.limit)} {_where(name, run)}": (
            held.most / held.limit
        )
        for run in runs
        for name, held in run.limited.items()
    }
    if not shares:
        return Check("within_limits", False, "No server counted any memory: no limit was shown.")
    highest = max(shares, key=lambda name: shares[name])
    sentence = (
        "Heap and direct memory are to stay within their limits in every limited run; the highest "
        f"peak was {highest}."
    )
    return Check("within_limits", shares[highest] <= 1, sentence)


def _everything_returned(runs: Sequence[Figures]) -> Check:
    left = [
        f"{format_count(held.final)} bytes of {_where(name, run)}"
        for run in runs
        for name, held in run.limited.items()
        if held.final
    ]
    sentence = (
        "The limiters are to have released all memory by the end of every run; not released: "
        f"{', '.join(left) or 'nothing'}."
    )
    return Check("everything_returned", not left, sentence)


def _where(name: str, run: Figures) -> str:
    return f"{name.replace(', ', ' in the ')} of “{run.label}”"


def _memory_ratio(off: Figures, floodgate: Figures, asked_bytes: int) -> Check:
    most, least = off.over_idle, floodgate.over_idle
    if most is None or least is None:
        return Check("memory_ratio", False, "The servers' memory was not measured.")
    ratio, judged = most / max(1, least), share_of_full(asked_bytes) >= JUDGED_SHARE
    expected = f"at least {MEMORY_RATIO:g} expected"
    sentence = (
        f"Broker and proxy together grew by {format_bytes(most)} without limits and by "
        f"{format_bytes(least)} with Floodgate, a ratio of {ratio:.1f} "
        f"({expected if judged else 'not judged, as the storm is too small for it'})."
    )
    return Check("memory_ratio", ratio >= MEMORY_RATIO or not judged, sentence, judged=judged)


def _broker_over_idle(run: Figures) -> Check:
    over = run.memory.get(f"{OVER_IDLE}, broker")
    if over is None:
        return Check("broker_over_idle", False, "The broker's memory was not measured.")
    sentence = (
        f"Floodgate's broker alone grew by {format_bytes(over)} "
        f"(at most {format_bytes(BROKER_OVER_IDLE_BYTES)} expected)."
    )
    return Check("broker_over_idle", over <= BROKER_OVER_IDLE_BYTES, sentence)


def stuck_checks(runs: Mapping[str, Figures]) -> list[Check]:
    """Judge the runs ``stuck-pulsar`` and ``stuck-floodgate``: one client reads nothing."""
    as_pulsar, floodgate = runs["stuck-pulsar"], runs["stuck-floodgate"]
    pulsar, beside, total = as_pulsar.phase, floodgate.phase, floodgate.total
    starved = (
        bool(pulsar["due"])
        and not pulsar["answered"]
        and not pulsar["failed"]
        and pulsar["refused_clients"] == pulsar["clients"]
    )
    answered = total.answered == total.requests and not beside["lost"]
    slowest = beside["slowest"]
    return [
        Check(
            "stuck_starves_pulsar",
            starved,
            f"{'Reproduced' if starved else 'Not reproduced'}: as in Pulsar, one client that reads "
            f"nothing blocks all others. Of {plural(pulsar['due'], 'listing')} due while it was "
            f"connected, {pulsar['answered']:,} were answered in that time and "
            f"{pulsar['refused']:,} refused, to {pulsar['refused_clients']:,} of "
            f"{plural(pulsar['clients'], 'client')}; the time without any answer was "
            f"{silence(as_pulsar)}.",
            neutral=True,
        ),
        Check(
            "stuck_leaves_pulsar",
            bool(pulsar["due_after"]) and pulsar["answered_after"] == pulsar["due_after"],
            f"After it had disconnected, {pulsar['answered_after']:,} of "
            f"{plural(pulsar['due_after'], 'listing')} were answered.",
        ),
        Check(
            "stuck_harms_nobody_in_floodgate",
            bool(beside["due"]) and answered,
            f"Beside the same client Floodgate answered {total.answered:,} of "
            f"{plural(total.requests, 'listing')} and refused {total.refused:,}; "
            f"{plural(beside['lost'], 'other connection')} lost; slowest answer: "
            f"{'no answer' if slowest is None else format_seconds(slowest)}.",
        ),
    ]
