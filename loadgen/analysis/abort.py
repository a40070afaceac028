"""Ends a run early when a threshold can no longer be met, whatever the rest of it brings.

Only rates and counts without selectors can be known before the end: what has ended bounds them
from one side, what is still planned from the other.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from loadgen.analysis.measures import ALL_REQUESTS, CLIENTS, FAILED, SERVERS
from loadgen.clients.records import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadgen.analysis.thresholds import Threshold
    from loadgen.clients.records import RequestCounters

# In the first moments nobody wants to be told.
DELAY_SECONDS = 3.0
_FAILURES = (Outcome.WRONG, Outcome.TIMEOUT, Outcome.DISCONNECTED, Outcome.UNREACHABLE)


class EarlyAbort:
    """Judges live totals. Mutable state: when the first request had been sent.

    Args:
        thresholds: All of the run.
        planned: Requests that the schedule holds, all of one operation; None if nobody knows.
    """

    def __init__(self, thresholds: Sequence[Threshold], planned: int | None) -> None:
        self._thresholds = [each for each in thresholds if _is_countable(each)]
        self._planned = planned
        self._started_at: float | None = None

    def missed(self, counters: RequestCounters, now_seconds: float) -> str | None:
        """Return the first threshold that can no longer be met, or None."""
        if self._started_at is None and counters.started:
            self._started_at = now_seconds
        if self._started_at is None or now_seconds - self._started_at < DELAY_SECONDS:
            return None
        missed = (each.text for each in self._thresholds if self._is_hopeless(each, counters))
        return next(missed, None)

    def _is_hopeless(self, threshold: Threshold, counters: RequestCounters) -> bool:
        least, most = self._bounds(threshold, counters.ended)
        assert threshold.value is not None
        return {
            "<": least >= threshold.value,
            "<=": least > threshold.value,
            ">": most <= threshold.value,
            ">=": most < threshold.value,
            "==": not least <= threshold.value <= most,
            "!=": least == most == threshold.value,
        }[threshold.operator]

    def _bounds(self, threshold: Threshold, ended: dict[str, int]) -> tuple[float, float]:
        """Return the least and the most that the figure can be when the run is over."""
        what, _, how = threshold.measure.name.partition(".")
        wanted = _FAILURES if what == FAILED else (Outcome(what),)
        found = {each: _ended(ended, threshold.subject, each) for each in Outcome}
        least: float = sum(found[each] for each in wanted)
        most = math.inf if self._planned is None else self._planned - sum(found.values()) + least
        # Answers are verified when the run is over: until then each may still be a wrong one.
        if Outcome.ANSWERED in wanted:
            least = 0
        elif Outcome.WRONG in wanted:
            most += found[Outcome.ANSWERED]
        if how == "count":
            return least, most
        if not self._planned:
            return 0.0, 1.0
        return least / self._planned, most / self._planned


def _is_countable(threshold: Threshold) -> bool:
    counted = threshold.measure.name.endswith((".rate", ".count")) and not threshold.selectors
    return counted and threshold.subject not in (CLIENTS, *SERVERS)


def _ended(ended: dict[str, int], subject: str, outcome: Outcome) -> int:
    if subject != ALL_REQUESTS:
        return ended.get(f"{subject}.{outcome}", 0)
    return sum(count for name, count in ended.items() if name.endswith(f".{outcome}"))
