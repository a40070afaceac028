"""Judges the thresholds of a run by its figures."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from loadgen.analysis.measured import NotMeasuredError
from loadgen.analysis.measures import SERVERS
from loadgen.analysis.thresholds import in_words
from loadgen.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from loadgen.analysis.measured import Measured
    from loadgen.analysis.thresholds import Threshold


@dataclass(frozen=True)
class Verdict:
    """A threshold and what was found.

    Attributes:
        threshold: The expression.
        value: The figure, in the measure's unit; None of what was not measured or never happened.
        found: The same in words.
    """

    threshold: str
    passed: bool
    value: float | None
    found: str

    def document(self) -> dict[str, Any]:
        """Return it as the summary says it."""
        return asdict(self)


def judge(thresholds: Iterable[Threshold], measured: Measured) -> list[Verdict]:
    """Return a verdict on each threshold; what nobody measured has not passed."""
    return [_verdict(threshold, measured) for threshold in thresholds]


def _verdict(threshold: Threshold, measured: Measured) -> Verdict:
    try:
        value = measured.value(threshold)
    except NotMeasuredError as error:
        return Verdict(threshold.text, passed=False, value=None, found=f"not measured: {error}")
    limit = measured.limit(threshold)
    if threshold.value is None and limit is None:
        return Verdict(threshold.text, passed=False, value=value, found="its limit is not known")
    passed = threshold.holds(value, limit)
    if math.isinf(value):
        return Verdict(threshold.text, passed, None, "never")
    found = in_words(threshold.measure.unit, value)
    if threshold.value is None and limit is not None:
        found += f" of {in_words(threshold.measure.unit, limit)}"
    return Verdict(threshold.text, passed, value, found)


def require_watched(thresholds: Iterable[Threshold], watched: Collection[str]) -> None:
    """Refuse thresholds on servers that nobody will watch.

    Raises:
        UsageError: There is one.
    """
    for each in thresholds:
        if each.subject in SERVERS and each.subject not in watched:
            raise UsageError(
                f"threshold {each.text!r} needs the figures of a {each.subject}: name "
                f"--{each.subject}-admin-url with --service-url, or give the scenario's cluster one"
            )
