"""The verdict on a run, from its summary alone: its checks, in the order of their exit codes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loadgen.errors import ExitCode
from loadgen.results.checks import CheckResult
from loadgen.units import format_seconds, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

WORDS = {
    ExitCode.PASSED: "passed",
    ExitCode.CORRECTNESS: "wrong answers",
    ExitCode.GENERATOR_LIMITED: "the generator was the limit",
    ExitCode.THRESHOLDS: "thresholds failed",
    ExitCode.INTERRUPTED: "interrupted",
}
"""The name of each verdict."""


@dataclass(frozen=True)
class Verdict:
    """A judgement of a run, with its reasons.

    Attributes:
        checks: Of every run: right answers, a run to its end, a punctual generator.
        thresholds: Of its scenario.
    """

    exit_code: ExitCode
    checks: Sequence[CheckResult]
    thresholds: Sequence[CheckResult]

    @property
    def word(self) -> str:
        """The verdict in a few words; without thresholds a run is not passed, but valid."""
        if self.passed and not self.thresholds:
            return "a valid run"
        return WORDS[self.exit_code]

    @property
    def passed(self) -> bool:
        """True if nothing failed."""
        return self.exit_code is ExitCode.PASSED


def verdict_of(summary: Mapping[str, Any]) -> Verdict:
    """Judge a run by its ``summary.json``; a wrong answer counts before anything else."""
    checks = [_answers(summary), _books(summary), _whole(summary), _punctual(summary)]
    thresholds = [*_aborted(summary), *_thresholds(summary), *_of_its_kind(summary)]
    wrong = ExitCode.CORRECTNESS
    codes = (wrong, wrong, ExitCode.INTERRUPTED, ExitCode.GENERATOR_LIMITED)
    failed = [code for code, check in zip(codes, checks, strict=True) if not check.passed]
    if not all(each.passed for each in thresholds):
        failed.append(ExitCode.THRESHOLDS)
    return Verdict(failed[0] if failed else ExitCode.PASSED, checks, thresholds)


def _answers(summary: Mapping[str, Any]) -> CheckResult:
    wrong, answered = int(summary["wrong"]), int(summary["answered"])
    right = f"No answer was wrong ({answered:,} checked)."
    return CheckResult("answers", not wrong, f"{wrong:,} answers were wrong." if wrong else right)


def _books(summary: Mapping[str, Any]) -> CheckResult:
    held = summary.get("held") or ()
    sentence = f"All clients have left, and still accounted for are {' and '.join(held)}."
    right = "The servers hold nothing for clients that have left."
    return CheckResult("books", not held, sentence if held else right)


def _aborted(summary: Mapping[str, Any]) -> Iterator[CheckResult]:
    missed = summary.get("aborted")
    if missed:
        yield CheckResult("early end", False, f"{missed} could no longer be met.")


def _whole(summary: Mapping[str, Any]) -> CheckResult:
    interrupted = bool(summary.get("interrupted")) and not summary.get("aborted")
    sentence = "The run was interrupted: its figures are those of what had ended."
    return CheckResult("end", not interrupted, sentence if interrupted else "It ran to its end.")


def _punctual(summary: Mapping[str, Any]) -> CheckResult:
    late, last = (
        format_seconds(float(summary.get(f"{name}_error_seconds_max") or 0.0))
        for name in ("start", "client_start")
    )
    limited = bool(summary["generator_limited"])
    why = f"tasks at most {late} late, single clients {last}"
    busy = (summary.get("generator") or {}).get("cpu_share_max")
    if limited:
        why = "; ".join(summary.get("generator_limits") or [why])
    elif busy is not None:
        why += f", at most {busy:.0%} of a core busy"
    verdict = "was the limit, not the server" if limited else "kept its schedule"
    return CheckResult("generator", not limited, f"The generator {verdict}: {why}.")


def _thresholds(summary: Mapping[str, Any]) -> Iterator[CheckResult]:
    for each in summary.get("thresholds") or ():
        name = str(each["threshold"])
        yield CheckResult(name, bool(each["passed"]), f"{name}: {each['found']}")


def _of_its_kind(summary: Mapping[str, Any]) -> Iterator[CheckResult]:
    """Yield the checks that a scenario adds to its own part of a summary."""
    for part in summary.values():
        if isinstance(part, dict) and isinstance(part.get("checks"), list):
            yield from (CheckResult(**check) for check in part["checks"])


def failures(verdict: Verdict) -> str:
    """Count what failed and what held, in words."""
    checks = [*verdict.checks, *verdict.thresholds]
    failed = sum(not check.passed for check in checks)
    return (
        f"{failed} of {plural(len(checks), 'check')} failed"
        if failed
        else f"all {len(checks)} hold"
    )
