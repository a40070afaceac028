"""Ends a run early when an expectation can no longer be met, whatever the rest of it brings.

Only rates and counts of requests can be known before the end: what has ended bounds them from one
side, what is still planned from the other.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from loadgen.engine.rows import Outcome
from loadgen.results.measures import CLIENTS, SERVERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadgen.engine.totals import Totals
    from loadgen.plan.group import Group
    from loadgen.results.expectations import Expectation

DELAY_SECONDS = 3.0
"""In the first moments nobody wants to be told."""
_FAILED = (Outcome.WRONG, Outcome.TIMEOUT, Outcome.DISCONNECTED, Outcome.UNREACHABLE)


class EarlyAbort:
    """Judges live totals. Mutable state: when the first request had been sent.

    Args:
        expectations: All of the run.
        groups: Of the document.
    """

    def __init__(self, expectations: Sequence[Expectation], groups: Sequence[Group]) -> None:
        self._expectations = [each for each in expectations if _is_countable(each)]
        self._groups = groups
        self._started_at: float | None = None

    def missed(self, totals: Totals, now_seconds: float) -> str | None:
        """Return the first expectation that can no longer be met, or None."""
        if self._started_at is None and totals.started:
            self._started_at = now_seconds
        if self._started_at is None or now_seconds - self._started_at < DELAY_SECONDS:
            return None
        return next((e.text for e in self._expectations if self._is_hopeless(e, totals)), None)

    def _is_hopeless(self, each: Expectation, totals: Totals) -> bool:
        least, most = self._bounds(each, totals)
        assert each.value is not None
        return {
            "<": least >= each.value,
            "<=": least > each.value,
            ">": most <= each.value,
            ">=": most < each.value,
            "==": not least <= each.value <= most,
            "!=": least == most == each.value,
        }[each.operator]

    def _bounds(self, each: Expectation, totals: Totals) -> tuple[float, float]:
        """Return the least and the most that the figure can be when the run is over."""
        what, _, how = each.measure.name.partition(".")
        wanted = _FAILED if what == "failed" else (Outcome(what),)
        found = dict.fromkeys(Outcome, 0)
        for name, count in totals.ended.items():
            group, operation, outcome = name.split(" ")
            if each.is_about(group, operation):
                found[Outcome(outcome)] += count
        planned = self._planned(each)
        least: float = sum(found[outcome] for outcome in wanted)
        most = math.inf if planned is None else planned - sum(found.values()) + least
        # Answers are verified when the run is over: until then each may still be a wrong one.
        if Outcome.ANSWERED in wanted:
            least = 0
        elif Outcome.WRONG in wanted:
            most += found[Outcome.ANSWERED]
        if how == "count":
            return least, most
        return (least / planned, most / planned) if planned else (0.0, 1.0)

    def _planned(self, each: Expectation) -> float | None:
        """Return the requests that the schedule holds; None if nobody knows."""
        planned = 0.0
        for group in self._groups:
            for place, operation in enumerate(group.operations):
                if each.is_about(group.name, operation):
                    if place or not group.countable:
                        return None
                    planned += group.count * group.requests_each(0.0)
        return planned


def _is_countable(each: Expectation) -> bool:
    counted = each.measure.name.endswith((".rate", ".count")) and each.value is not None
    only_groups = all(key == "group" for key, _ in each.selectors)
    return counted and only_groups and each.subject not in (CLIENTS, *SERVERS)
