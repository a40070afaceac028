"""Judging of expectations: after a run from its tables, or during the run from live totals.

Live totals can decide only about rates and counts of requests: ended requests are a bound from one
side, and requests still planned are a bound from the opposite side.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from loadgen.engine.rows import Outcome
from loadgen.results.expectations import (
    CLIENTS,
    OPERATIONS,
    OPERATORS,
    SELECTORS,
    SERVERS,
    UNWATCHED,
    Expectation,
)
from loadgen.results.questions import QUERIES, split
from loadgen.results.units import LOST, in_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from loadgen.engine.totals import Totals
    from loadgen.plan.group import Group
    from loadgen.results.results import Results


class Judged(NamedTuple):
    """The result of judging an expectation: whether the expectation holds, and the measured value.

    Attributes:
        value: The measured value; None without a measurement; infinite if the event never happened.
    """

    expectation: Expectation
    holds: bool
    value: float | None
    found: str


# -- at the end -----------------------------------------------------------------------------------


_SERVERS = f"({QUERIES['servers'].sql})"
_ROWS = {
    CLIENTS: f"(SELECT *, '' AS outcome, 0 AS bytes FROM ({QUERIES['clients'].sql}))",
    **dict.fromkeys(SERVERS, _SERVERS),
}
"""The rows of the measures of clients and servers; all further measures are of requests."""


def judge(expectations: Iterable[Expectation], results: Results) -> list[Judged]:
    """Judge expectations by a run's tables; an expectation without a measured value fails."""
    return [_judged(each, results) for each in expectations]


def _judged(each: Expectation, results: Results) -> Judged:
    measure, wanted, subject = each.measure, each.value, each.subject
    value = _value_of(each, results)
    if value is None:
        missing = "none of it was due while figures were taken"
        if subject in SERVERS:
            seen = results.sql("SELECT 1 FROM samples WHERE process = :name LIMIT 1", name=subject)
            missing = f"the {subject} does not tell it" if seen else UNWATCHED.format(subject)
        return Judged(each, holds=False, value=None, found=f"not measured: {missing}")
    found = in_words(measure.unit, value, measure.noun)
    if wanted is None:
        limit = f"SELECT max(last) FROM {_SERVERS} WHERE process = :process AND figure = :figure"
        wanted = results.value(limit, process=subject, figure=measure.limited)
        if not wanted or not wanted > 0:  # A disabled limit is no number.
            return Judged(each, holds=False, value=value, found=f"{found}; its limit is not known")
        found += f" of {in_words(measure.unit, wanted)}"
    return Judged(each, OPERATORS[each.operator](value, wanted), value, found)


def _value_of(each: Expectation, results: Results) -> float | None:
    subject, parameters = each.subject, dict(each.selectors)
    if each.measure.name == "again.seconds":
        shocks = [(str(shock["what"]), shock["at"]) for shock in results.run.get("shocks") or ()]
        restarts = [at for what, at in shocks if "restart" in what and subject in what]
        took = [results.query("again", at=at)[0]["again_seconds"] for at in restarts]
        return max((math.inf if seconds is None else seconds for seconds in took), default=None)
    conditions = [f"{SELECTORS[key]} = :{key}" for key in parameters]
    if subject in (*OPERATIONS, *SERVERS):
        parameters["subject"] = subject
        conditions.append(f"r.{'process' if subject in SERVERS else 'operation'} = :subject")
    where, rows = " AND ".join(conditions) or "true", _ROWS.get(subject, "measured")
    text = f"SELECT {each.measure.sql} AS value FROM {rows} r WHERE {where}"
    if each.share is not None:
        share = {"value": round(each.share * 1_000_000)}
        text = split("'all'", where, each.measure.sql, share, rows)
    found = results.sql(text, **parameters)
    value = found[0]["value"] if found else None
    if rows == "measured" and value == 0:
        # No request is not 0: all requests were in the warm-up, or the selected name does not
        # exist.
        taken, due = (
            results.value(f"SELECT count(*) FROM {table} r WHERE {where}", **parameters)
            for table in ("measured", "requests")
        )
        if not taken and (due or set(dict(each.selectors)) - {"group"}):
            return None
    return None if value is None else float(value)


# -- early ----------------------------------------------------------------------------------------


def missed_early(
    expectations: Iterable[Expectation], groups: Sequence[Group], totals: Totals
) -> str | None:
    """Return the first expectation out of reach for a running load; None if all can be met."""
    if not totals.started:
        return None
    return next((each.text for each in expectations if _is_hopeless(each, groups, totals)), None)


def _is_hopeless(each: Expectation, groups: Sequence[Group], totals: Totals) -> bool:
    how = each.measure.name.partition(".")[2]
    countable = how in ("rate", "count") and each.subject not in (CLIENTS, *SERVERS)
    if each.value is None or not countable or any(key != "group" for key, _ in each.selectors):
        return False
    least, most = _bounds(each, groups, totals)
    nearest = min(max(each.value, least), most)
    holds = OPERATORS[each.operator]
    return not any(holds(figure, each.value) for figure in (least, nearest, most))


def _bounds(each: Expectation, groups: Sequence[Group], totals: Totals) -> tuple[float, float]:
    """Return the smallest and largest possible value of a count or share at the run's end."""
    wanted = LOST if each.what == "failed" else (Outcome(each.what),)
    found = Counter[str]()
    for name, count in totals.ended.items():
        group, operation, outcome = name.split(" ")
        if each.is_about(group, operation):
            found[outcome] += count
    # Operations that follow others, and endless groups, have no planned number.
    planned = sum(
        group.count * group.requests_each(0.0) if group.countable and not place else math.inf
        for group in groups
        for place, operation in enumerate(group.operations)
        if each.is_about(group.name, operation)
    )
    least: float = sum(found[outcome] for outcome in wanted)
    most = planned - found.total() + least
    # Verification waits until the run is over: until then each answer may still be wrong.
    if Outcome.ANSWERED in wanted:
        least = 0
    elif Outcome.WRONG in wanted:
        most += found[Outcome.ANSWERED]
    if each.measure.name.endswith(".count"):
        return least, most
    return (least / planned, most / planned) if 0 < planned < math.inf else (0.0, 1.0)
