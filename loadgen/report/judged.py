"""Verdicts on the page: each run's thresholds, and its generator's punctuality."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from loadgen.report.charts import key_mark, run_class
from loadgen.results.verdict import failures, verdict_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadgen.results.checks import CheckResult
    from loadgen.results.summary import Run

_MEANINGS = {
    "answers": "Not valid: answers were wrong (exit code 97)",
    "books": "Memory was not given back (exit code 97)",
    "end": "Not whole: interrupted (exit code 130)",
    "generator": "Not valid: the generator was the limit (exit code 98)",
}
_CLASSES = {"✓": "good", "!": "neutral", "–": "neutral", "✗": "bad"}  # noqa: RUF001


def render_alarms(runs: Sequence[tuple[int, Run]]) -> str:
    """Say at the top of the page which runs are not valid, or failed; nothing if none did."""
    return "".join(_alarm(index, run) for index, run in runs)


def _alarm(index: int, run: Run) -> str:
    verdict = verdict_of(run.document)
    failed = [(_MEANINGS[each.name], [each]) for each in verdict.checks if not each.passed]
    missed = [each for each in verdict.thresholds if not each.passed]
    if missed:
        failed.append(("Thresholds failed (exit code 99)", missed))
    return "".join(
        f'<p class="alarm">{key_mark(index)} <strong>{meaning}.</strong> '
        f"{escape(' '.join(each.sentence for each in checks))}</p>"
        for meaning, checks in failed
    )


def check_list(checks: Sequence[CheckResult]) -> str:
    """Render checks as a list, each with a mark."""
    items = "".join(
        f'<li><span class="mark {_CLASSES[check.mark]}">{check.mark}</span>'
        f"{escape(check.sentence)}</li>"
        for check in checks
    )
    return f'<ul class="checks">{items}</ul>'


def render_judgements(runs: Sequence[tuple[int, Run]]) -> str:
    """Render the checks and thresholds of each run, with its generator's honesty among them."""
    articles = "".join(_judgement(index, run) for index, run in runs)
    return (
        '<section><h2>Whether it held</h2><p class="hint">Thresholds are the scenario\'s. A run '
        "whose generator was late measured the generator, not the server.</p>"
        f'<div class="stories">{articles}</div></section>'
    )


def _judgement(index: int, run: Run) -> str:
    verdict = verdict_of(run.document)
    checks = check_list([*verdict.checks, *verdict.thresholds])
    return (
        f'<article class="{run_class(index)}"><h3>{key_mark(index)} {escape(run.summary.label)}: '
        f"{failures(verdict)}</h3>{checks}</article>"
    )


def verdict_line(run: Run) -> str:
    """Render the verdict on a run in a line."""
    verdict = verdict_of(run.document)
    css, mark = ("good", "✓") if verdict.passed else ("bad", "✗")
    return f'<p class="verdict {css}">{mark} {escape(verdict.word)}: {failures(verdict)}</p>'
