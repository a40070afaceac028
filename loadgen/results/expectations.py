"""Parsing of a scenario's expectations, such as ``list{group=steady}.response.p99 < 2s``.

``SUBJECT[{KEY=VALUE,...}].MEASURE OPERATOR VALUE``, or in short ``GROUP.OPERATION.MEASURE``, where
``answered`` without a suffix is the share of answered requests. Every mistake is reported in a
sentence with the expression and the nearest valid name.
"""

from __future__ import annotations

import re
from operator import eq, ge, gt, le, lt, ne
from typing import TYPE_CHECKING, NamedTuple, get_args

from loadgen.behaviours.registry import AnyGroup
from loadgen.engine.rows import Outcome
from loadgen.errors import UsageError, meant
from loadgen.results.questions import PARTS
from loadgen.results.units import EXAMPLES, Unit, value_of
from loadgen.results.vocabulary import limit_of, unit_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    _Compared = Callable[[float, float], bool]


# -- measures ---------------------------------------------------------------------------------

ALL_REQUESTS, CLIENTS, SERVERS = "requests", "clients", ("broker", "proxy")
OPERATIONS = tuple(
    dict.fromkeys(each for kind in get_args(get_args(AnyGroup)[0]) for each in kind.operations)
)
"""Operations of requests, named as in the rows."""
SELECTORS = {key: PARTS[f"by-{key}"] for key in ("family", "group", "tenant", "namespace")}
"""Selectors of requests and clients, and the column of each."""


class Measure(NamedTuple):
    """A measure for use in expectations; docs/measuring.md explains each measure.

    Attributes:
        name: The words after the dot that follows the subject; ``pN`` stands for any percentile.
        sql: SQL of the measured value, over rows ``r`` of requests, of clients, or of the query
            ``servers``; for a percentile, the name of the column.
        limited: The name of the metric with the server's own limit of the measure, or empty.
        noun: The noun for the things counted.
    """

    name: str
    unit: Unit
    sql: str
    limited: str = ""
    noun: str = ""


_SECONDS_TAKEN = """(SELECT min(least(w.measured_until, n.ended) - w.measured_from)
  FROM runs w CROSS JOIN (SELECT max(done) AS ended FROM requests) n)"""
"""The seconds of figures; a run without more requests ends earlier."""


def _counted(name: str, condition: str, noun: str = "requests") -> tuple[Measure, ...]:
    one = f"CASE WHEN {condition} THEN 1E0 ELSE 0E0 END"
    return (
        Measure(f"{name}.rate", Unit.SHARE, f"avg({one})"),
        Measure(f"{name}.count", Unit.COUNT, f"coalesce(sum({one}), 0)", noun=noun),
        Measure(f"{name}.per_second", Unit.RATE, f"sum({one}) / nullif({_SECONDS_TAKEN}, 0)"),
    )


_COLUMNS = {
    "max": "max",
    "final": "last",
    "count": "rise",
    "rise": "max - r.first",
    "seconds": "rise",
}
"""The last word of a server's measure, and the column of the question about servers."""


def _of_server(name: str) -> Measure:
    figure, _, column = name.rpartition(".")
    figure = name if column == "seconds" else figure
    unit, noun = unit_of(figure)
    sql = f"max(CASE WHEN r.figure = '{figure}' THEN r.{_COLUMNS[column]} END)"
    return Measure(name, unit, sql, limit_of(figure) if figure.endswith(".used") else "", noun)


OF_REQUESTS = (
    Measure("response.pN", Unit.SECONDS, "r.response_seconds"),
    Measure("response.max", Unit.SECONDS, "max(r.response_seconds)"),
    Measure("service.pN", Unit.SECONDS, "r.service_seconds"),
    Measure("service.max", Unit.SECONDS, "max(r.service_seconds)"),
    *(each for out in Outcome for each in _counted(str(out), f"r.outcome = '{out}'")),
    *_counted("failed", "r.outcome NOT IN ('answered', 'refused')"),
    Measure("topics.min", Unit.COUNT, "min(r.topics)", noun="topics"),
    Measure("topics.max", Unit.COUNT, "max(r.topics)", noun="topics"),
)
OF_CLIENTS = (
    *_counted("back", "r.back_seconds < CAST('Infinity' AS DOUBLE)", "clients")[:2],
    Measure("back.pN", Unit.SECONDS, "r.back_seconds"),
    Measure("back.max", Unit.SECONDS, "max(r.back_seconds)"),
    Measure("refused.rate", Unit.SHARE, "sum(r.refused) * 1E0 / nullif(sum(r.asked), 0)"),
    Measure("listings.max", Unit.COUNT, "max(r.listings)", noun="lists"),
    Measure("reconnects.max", Unit.COUNT, "max(r.reconnects)", noun="connections"),
    Measure("reconnects.min", Unit.COUNT, "min(r.reconnects)", noun="connections"),
)
_LIMITER = ("used.max", "used.final", "waiting.max", "timeouts.count")
OF_SERVERS = (
    *(_of_server(f"{kind}.{name}") for kind in ("heap", "direct") for name in _LIMITER),
    *map(_of_server, ("resident.max", "resident.rise", "unread.max", "cpu.seconds")),
    *map(_of_server, ("jvm.heap.used.max", "jvm.direct.used.max")),
    Measure("again.seconds", Unit.SECONDS, ""),
)


MEASURES = {
    **dict.fromkeys((*OPERATIONS, ALL_REQUESTS), OF_REQUESTS),
    CLIENTS: OF_CLIENTS,
    **dict.fromkeys(SERVERS, OF_SERVERS),
}
"""All subjects of expectations, and the measures of each."""
OPERATORS: dict[str, _Compared] = {"<": lt, "<=": le, ">": gt, ">=": ge, "==": eq, "!=": ne}
EXAMPLE = "list.response.p99 < 2s"
LIMIT = "limit"
"""The value for the server's own limit."""


class Expectation(NamedTuple):
    """A parsed expectation of a scenario.

    Attributes:
        text: The expression as written in the scenario.
        subject: An operation, ``requests``, ``clients``, ``broker`` or ``proxy``.
        value: The bound, in the unit of the measure; None means the server's own limit.
        share: The percentile as a share from 0 to 1; None for other measures.
        selectors: Keys and values required of requests or clients to count.
    """

    text: str
    subject: str
    measure: Measure
    operator: str
    value: float | None
    share: float | None = None
    selectors: tuple[tuple[str, str], ...] = ()

    @property
    def what(self) -> str:
        """The first word of the measure's name, such as ``response``."""
        return self.measure.name.partition(".")[0]

    def is_about(self, group: str, operation: str) -> bool:
        """Return True if the expectation covers an operation of a group."""
        chosen = dict(self.selectors).get("group", group)
        return chosen == group and self.subject in (operation, ALL_REQUESTS, CLIENTS)


UNWATCHED = (
    "nobody watched the {0}: add --admin-url {0}=http://HOST:8080, or expect something else: "
    "--set 'expect=[list.answered == 100%]'"
)
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
    """Parse the expectations of a scenario; a repeated expression is parsed once.

    Args:
        texts: The expressions of the expectations.
        groups: Names of the scenario's groups of clients; None allows any name.

    Raises:
        UsageError: An expression cannot be understood.
    """
    return tuple(parse_expectation(text, groups) for text in dict.fromkeys(texts))


def require_measured(
    expectations: Iterable[Expectation], watched: Iterable[str], operations: Iterable[str]
) -> None:
    """Check, before a run, that the run will measure all subjects of the expectations.

    Raises:
        UsageError: An expectation is about a server without samples, or an operation not performed
            by any group.
    """
    watched, operations = set(watched), set(operations)
    for each in expectations:
        if each.subject in SERVERS and each.subject not in watched:
            raise UsageError(f"{each.text!r}: {UNWATCHED.format(each.subject)}")
        if each.subject in OPERATIONS and each.subject not in operations:
            raise UsageError(
                f"{each.text!r}: no group of the scenario does {each.subject}; there are "
                f"{', '.join(sorted(operations))}"
            )


def parse_expectation(text: str, groups: Sequence[str] | None = None) -> Expectation:
    """Parse the expression of one expectation.

    Raises:
        UsageError: The expression cannot be understood.
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
        _require(text, "there is no subject", subject, [*MEASURES, *(groups or ())])
        if subject not in MEASURES:
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
        raise _mistake(text, f"{sentence} {name}{meant(name, names)}")


def _measure(text: str, subject: str, name: str) -> tuple[Measure, float | None]:
    measures = {each.name: each for each in MEASURES[subject]}
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
