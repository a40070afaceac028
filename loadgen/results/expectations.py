"""What a document expects of a run: ``list{group=steady}.response.p99 < 2s``, read and judged.

``SUBJECT[{KEY=VALUE,...}].MEASURE OPERATOR VALUE``, or in short ``GROUP.OPERATION.MEASURE``, where
a bare ``answered`` is the share of those answered. Every mistake is one sentence that quotes the
expression and names the nearest thing that there is.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from difflib import get_close_matches
from operator import eq, ge, gt, le, lt, ne
from typing import TYPE_CHECKING

from loadgen.errors import UsageError
from loadgen.results.measures import (
    ALL_REQUESTS,
    CLIENTS,
    OPERATIONS,
    SELECTORS,
    SERVERS,
    Measure,
    measures_of,
    subjects,
)
from loadgen.results.questions import QUERIES, split
from loadgen.results.units import EXAMPLES, in_words, value_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from loadgen.results.results import Results

    _Compared = Callable[[float, float], bool]

OPERATORS: dict[str, _Compared] = {"<": lt, "<=": le, ">": gt, ">=": ge, "==": eq, "!=": ne}
EXAMPLE = "list.response.p99 < 2s"
LIMIT = "limit"
"""The value that stands for the server's own limit."""


@dataclass(frozen=True)
class Expectation:
    """An expectation.

    Attributes:
        text: The expression as it was written.
        subject: An operation, ``requests``, ``clients``, ``broker`` or ``proxy``.
        value: In the measure's unit; None is the server's own limit.
        share: Of a percentile, from 0 to 1; else None.
        selectors: Which requests or clients count, by column.
    """

    text: str
    subject: str
    measure: Measure
    operator: str
    value: float | None
    share: float | None = None
    selectors: tuple[tuple[str, str], ...] = ()

    def is_about(self, group: str, operation: str) -> bool:
        """Return whether it is of the requests of a group."""
        chosen = dict(self.selectors).get("group", group)
        return chosen == group and self.subject in (operation, ALL_REQUESTS, CLIENTS)

    def says_of(self, group: str, operation: str, *measures: str) -> bool:
        """Return whether it says one of some measures of a group's requests."""
        named = self.measure.name.partition(".")[0] in measures
        return named and self.is_about(group, operation)


_UNWATCHED = "nobody watched the {0}: add --admin-url {0}=http://HOST:8080"


@dataclass(frozen=True)
class Judged:
    """An expectation and what was found: in the measure's unit, and in words.

    Attributes:
        value: None of what nobody measured; infinite of what never happened.
    """

    expectation: Expectation
    holds: bool
    value: float | None
    found: str


# -- reading ------------------------------------------------------------------------------------

_FORM = re.compile(
    r"^\s*(?P<subject>[\w-]+)\s*(?:\{(?P<selectors>[^{}]*)\})?\s*\.\s*(?P<measure>[\w.-]+?)\s*"
    r"(?P<operator>[<>=!]+)\s*(?P<value>[^<>=!]+?)\s*$"
)
_PERCENTILE = re.compile(r"^(?P<what>\w+)\.p(?P<share>\d+(?:\.\d+)?)$")
_LONGEST_QUOTE = 80


def parse_expectations(
    texts: Iterable[str], groups: Sequence[str] | None = None
) -> tuple[Expectation, ...]:
    """Return the expectations of expressions, each once.

    Args:
        texts: The expressions.
        groups: Names of the document's groups; None: any may be named.

    Raises:
        UsageError: One of them cannot be understood.
    """
    return tuple(parse_expectation(text, groups) for text in dict.fromkeys(texts))


def require_measured(
    expectations: Iterable[Expectation], watched: Iterable[str], operations: Iterable[str]
) -> None:
    """Refuse, before a run, expectations that nobody would measure.

    Raises:
        UsageError: One is of a server that nobody watches, or of an operation that no group has.
    """
    watched, operations = set(watched), set(operations)
    for each in expectations:
        if each.subject in SERVERS and each.subject not in watched:
            raise UsageError(f"{each.text!r}: {_UNWATCHED.format(each.subject)}")
        known = {ALL_REQUESTS, CLIENTS, *SERVERS, *operations}
        if each.subject not in known:
            raise UsageError(
                f"{each.text!r}: no group of the scenario does {each.subject}; there are "
                f"{', '.join(sorted(operations))}"
            )


def parse_expectation(text: str, groups: Sequence[str] | None = None) -> Expectation:
    """Return the expectation of an expression.

    Raises:
        UsageError: It cannot be understood.
    """
    found = _FORM.match(text)
    if found is None:
        raise _mistake(text, f"it is not of the form SUBJECT.MEASURE OPERATOR VALUE as {EXAMPLE}")
    subject, name = found["subject"], found["measure"]
    selectors = _selectors(text, subject, found["selectors"])
    operation, dot, rest = name.partition(".")
    if dot and operation in (*OPERATIONS, CLIENTS):
        selectors = (*selectors, ("group", subject))
        subject, name = operation, rest
    else:
        _require(text, "there is no subject", subject, [*subjects(), *(groups or ())])
        if subject not in subjects():
            _require(text, f"group {subject} has no operation", operation, [*OPERATIONS, CLIENTS])
    for key, value in selectors:
        if key == "group" and groups is not None:
            _require(text, "there is no group", value, groups)
    if found["operator"] not in OPERATORS:
        raise _mistake(text, f"{found['operator']} is none of {' '.join(OPERATORS)}")
    measure, share = _measure(text, subject, name)
    wanted, plain = _value(text, measure, found["value"]), " ".join(text.split())
    return Expectation(plain, subject, measure, found["operator"], wanted, share, selectors)


def _mistake(text: str, reason: str) -> UsageError:
    quoted = text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}..."
    return UsageError(f"expectation {quoted!r}: {reason}")


def _require(text: str, sentence: str, name: str, known: Iterable[str]) -> None:
    names = list(known)
    if name not in names:
        near = get_close_matches(name, names, 1, 0.5)
        remedy = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
        raise _mistake(text, f"{sentence} {name}; {remedy}")


def _measure(text: str, subject: str, name: str) -> tuple[Measure, float | None]:
    measures = {each.name: each for each in measures_of(subject)}
    name = f"{name}.rate" if f"{name}.rate" in measures else name
    found = _PERCENTILE.match(name)
    if found is None or f"{found['what']}.pN" not in measures:
        _require(text, f"{subject} has no", name, measures)
        if name.endswith(".pN"):
            raise _mistake(text, "pN stands for a percentile: write p99 or p99.9")
        return measures[name], None
    share = float(found["share"])
    if not 0 < share <= 100:
        digits = found["share"]
        meant = f"p{digits[:2]}.{digits[2:]}" if re.fullmatch(r"9{3,}", digits) else "p0.1 to p100"
        raise _mistake(text, f"p{digits} is no percentile: write {meant}")
    return measures[f"{found['what']}.pN"], share / 100


def _selectors(text: str, subject: str, inside: str | None) -> tuple[tuple[str, str], ...]:
    if inside is None:
        return ()
    if subject in SERVERS:
        raise _mistake(text, f"{subject} takes no selectors: leave the braces out")
    chosen: dict[str, str] = {}
    for part in inside.split(","):
        key, equals, value = (each.strip() for each in part.partition("="))
        if not (key and equals and value):
            raise _mistake(text, f"{{{inside}}} is not of the form {{family=cpp,tenant=t1}}")
        _require(text, "nothing can be selected by", key, SELECTORS)
        if key in chosen:
            raise _mistake(text, f"{key} is selected twice: write an expectation for each")
        chosen[key] = value
    return tuple(chosen.items())


def _value(text: str, measure: Measure, written: str) -> float | None:
    form = EXAMPLES[measure.unit]
    if written == LIMIT:
        if measure.limited:
            return None
        raise _mistake(text, f"{measure.name} has no limit of its own: write {form}")
    try:
        return value_of(measure.unit, written)
    except (UsageError, ValueError):
        needed = f"is measured in {measure.unit}: write {form}, not {written}"
        raise _mistake(text, f"{measure.name} {needed}") from None


# -- judging ------------------------------------------------------------------------------------


_SERVERS = f"({QUERIES['servers'].sql})"
_ROWS = {
    CLIENTS: f"(SELECT *, '' AS outcome, 0 AS bytes FROM ({QUERIES['clients'].sql}))",
    **dict.fromkeys(SERVERS, _SERVERS),
}
"""What measures of a subject are taken of, where that is not requests."""


def judge(expectations: Iterable[Expectation], results: Results) -> list[Judged]:
    """Judge each expectation; what nobody measured does not hold."""
    return [_judged(each, results) for each in expectations]


def _judged(each: Expectation, results: Results) -> Judged:
    measure, wanted, subject = each.measure, each.value, each.subject
    value = _value_of(each, results)
    if value is None:
        missing = "none of it was due while figures were taken"
        if subject in SERVERS:
            seen = results.sql("SELECT 1 FROM samples WHERE process = :name LIMIT 1", name=subject)
            missing = f"the {subject} does not tell it" if seen else _UNWATCHED.format(subject)
        return Judged(each, holds=False, value=None, found=f"not measured: {missing}")
    found = in_words(measure.unit, value, measure.noun)
    if wanted is None:
        limit = f"SELECT max(last) FROM {_SERVERS} WHERE process = :process AND figure = :figure"
        wanted = results.value(limit, process=subject, figure=measure.limited)
        if not wanted or not wanted > 0:  # A limit that is off is no number.
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
        # None of nothing is no 0: all of it was in the warm-up, or there is nothing of that name.
        taken, due = (
            results.value(f"SELECT count(*) FROM {table} r WHERE {where}", **parameters)
            for table in ("measured", "requests")
        )
        if not taken and (due or set(dict(each.selectors)) - {"group"}):
            return None
    return None if value is None else float(value)
