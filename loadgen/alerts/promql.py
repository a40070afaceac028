"""An evaluator of PromQL expressions over the server metrics sampled in a run.

It supports only the PromQL syntax that the alerting rules use.

An expression is parsed once and evaluated at each scrape. An error names any other syntax:
``promtool`` evaluates all of PromQL.
"""

from __future__ import annotations

import math
import operator
import re
from collections import defaultdict
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Labels = tuple[tuple[str, str], ...]
    Vector = dict[Labels, float]
    Points = list[tuple[float, float]]
    Matches = Callable[[Mapping[str, str]], bool]
    Evaluation = Callable[["Scrapes", int], Vector]
    Operand = float | Evaluation

NAME = "__name__"
_NEAR = 1.1
"""A series that begins or ends within this many scrape intervals of a range fills the range."""


class Scrapes(NamedTuple):
    """The metrics of all servers as Prometheus would scrape them: one page per scrape interval.

    Metrics count as unchanged before the first page and after the last one.

    A server that did not answer a scrape has no series in that page, like stale series in
    Prometheus.

    Attributes:
        every: Seconds between two pages.
        pages: For each page, the series by metric name; at least one page.
    """

    every: float
    pages: Sequence[Mapping[str, Vector]]

    def instant(self, number: int, metric: str, matches: Matches) -> Vector:
        """Return those series of a metric in page ``number`` whose labels match a selector.

        The first page stands for all time before the run, and the last for all time after.
        """
        series = self.pages[min(max(number, 0), len(self.pages) - 1)].get(metric, {})
        return {labels: value for labels, value in series.items() if matches(dict(labels))}

    def window(
        self, number: int, seconds: float, metric: str, matches: Matches
    ) -> dict[Labels, Points]:
        """Return each matching series' points in the last ``seconds`` up to page ``number``."""
        found: defaultdict[Labels, Points] = defaultdict(list)
        for back in range(math.ceil(seconds / self.every) - 1, -1, -1):
            for series, value in self.instant(number - back, metric, matches).items():
                found[series].append((-back * self.every, value))
        return found


# -- functions and operators ----------------------------------------------------------------------


def _increase(points: Points, seconds: float) -> float | None:
    """Return a counter's increase in the last ``seconds``, computed like PromQL's ``increase``.

    A lower value than before means that the counter began again from 0. The gaps at both ends of
    the range are extrapolated: by half a step at most if the points end early, and never below 0.
    """
    if len(points) < 2:
        return None
    (first, begin), (last, _) = points[0], points[-1]
    values = [value for _, value in points]
    rise = sum(b - a if b >= a else b for a, b in pairwise(values))
    spans, step = last - first, (last - first) / (len(points) - 1)
    before, behind = first + seconds, -last
    before = before if before < step * _NEAR else step / 2
    behind = behind if behind < step * _NEAR else step / 2
    if rise > 0 and begin >= 0:
        before = min(before, spans * begin / rise)
    return rise * (spans + before + behind) / spans


def _rate(points: Points, seconds: float) -> float | None:
    rise = _increase(points, seconds)
    return None if rise is None else rise / seconds


def _over_time(reckon: Callable[[list[float]], float]) -> Callable[[Points, float], float | None]:
    return lambda points, seconds: reckon([value for _, value in points])


def _divided(one: float, other: float) -> float:
    """Divide two floats as IEEE 754 does: a division by zero returns an infinity or NaN."""
    if other:
        return one / other
    return math.nan if not one or math.isnan(one) else math.copysign(math.inf, one)


_AGGREGATIONS: dict[str, Callable[[list[float]], float]] = {
    "sum": math.fsum, "max": max, "min": min, "avg": fmean,
    "count": lambda values: float(len(values)),
}  # fmt: skip
_FUNCTIONS: dict[str, Callable[[Points, float], float | None]] = {
    "rate": _rate,
    "increase": _increase,
    **{f"{name}_over_time": _over_time(reckon) for name, reckon in _AGGREGATIONS.items()},
}
_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": _divided,
}  # fmt: skip
_COMPARING: dict[str, Callable[[float, float], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<=": operator.le, "<": operator.lt,
    ">=": operator.ge, ">": operator.gt,
}  # fmt: skip
_SETS = ("or", "and", "unless")
_LEVELS = (("or",), ("and", "unless"), tuple(_COMPARING), ("+", "-"), ("*", "/"))
"""Operators in ascending order of precedence; all associate to the left."""
_MATCHING: dict[str, Callable[[str, str], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "=~": lambda value, pattern: re.fullmatch(pattern, value) is not None,
    "!~": lambda value, pattern: re.fullmatch(pattern, value) is None,
}


# -- parsing --------------------------------------------------------------------------------------

_TOKEN = re.compile(
    r"\s+|#[^\n]*|(?P<duration>(?:\d+(?:ms|[smhdwy]))+)"
    r"|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<word>[A-Za-z_:][\w:]*)"
    r"|(?P<text>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')|(?P<sign>[=!><]=|=~|!~|\S)"
)
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800, "y": 31_536_000}
_PART = re.compile(r"(\d+)(ms|[smhdwy])")


class NotEvaluatedError(ValueError):
    """An expression uses PromQL syntax that this module does not support; the message quotes it."""


class Expression(NamedTuple):
    """A parsed PromQL expression: the metrics it reads, and the function that evaluates it."""

    metrics: frozenset[str]
    evaluate: Evaluation


def parse_promql(text: str) -> Expression:
    """Parse a PromQL expression.

    Raises:
        NotEvaluatedError: The text is not an expression, or uses syntax that is not supported here.
    """
    parser = _Parser(text)
    evaluate = parser.binary(0)
    if parser.next or isinstance(evaluate, float):
        raise NotEvaluatedError(f"{parser.next or text!r} is not understood")
    return Expression(frozenset(parser.metrics), evaluate)


def parse_duration(text: str) -> float:
    """Convert a Prometheus duration, such as ``1m30s``, to seconds."""
    return sum(int(count) * _UNITS[unit] for count, unit in _PART.findall(text))


class _Parser:
    """A recursive-descent parser of one PromQL expression.

    Mutable state: the tokens not yet parsed, and the metric names read so far.
    """

    def __init__(self, text: str) -> None:
        self.metrics: set[str] = set()
        found = ((each.lastgroup, each[0]) for each in _TOKEN.finditer(text))
        self._tokens = [(kind, token) for kind, token in found if kind][::-1]

    @property
    def next(self) -> str:
        """The next token; empty after the last one."""
        return self._tokens[-1][1] if self._tokens else ""

    def _take(self, *wanted: str) -> str:
        """Consume the next token if it is one of ``wanted``; otherwise return an empty string."""
        return self._tokens.pop()[1] if self._tokens and self.next in wanted else ""

    def _require(self, wanted: str) -> None:
        if not self._take(wanted):
            raise NotEvaluatedError(f"{self.next or 'the end'!r} stands where {wanted} should")

    def _take_kind(self, kind: str) -> str:
        if not self._tokens or self._tokens[-1][0] != kind:
            raise NotEvaluatedError(f"{self.next or 'the end'!r} is no {kind}")
        return self._tokens.pop()[1]

    def binary(self, level: int) -> Operand:
        """Parse operands joined by operators of the given precedence level or of a higher one."""
        if level == len(_LEVELS):
            return self._operand()
        left = self.binary(level + 1)
        while sign := self._take(*_LEVELS[level]):
            left = _joined(sign, left, self.binary(level + 1))
        return left

    def _operand(self) -> Operand:
        if self.next == "(":
            return self._in_parentheses()
        if self._take("-"):
            return _joined("-", 0.0, self._operand())
        if self._tokens and self._tokens[-1][0] == "number":
            return float(self._tokens.pop()[1])
        word = self._take_kind("word")
        if word in _AGGREGATIONS:
            return self._aggregation(_AGGREGATIONS[word])
        if self.next == "(":
            return self._function(word)
        matches = self._selector(word)
        return lambda scrapes, number: scrapes.instant(number, word, matches)

    def _in_parentheses(self) -> Operand:
        self._require("(")
        inner = self.binary(0)
        self._require(")")
        return inner

    def _selector(self, metric: str) -> Matches:
        """Parse the conditions on labels, ``{label="value"}``, that follow a metric's name."""
        self.metrics.add(metric)
        wanted: list[tuple[str, Callable[[str, str], bool], str]] = []
        if self._take("{"):
            while not self._take("}"):
                label, sign = self._take_kind("word"), self._take_kind("sign")
                if sign not in _MATCHING:
                    raise NotEvaluatedError(f"{sign!r} compares no label")
                wanted.append((label, _MATCHING[sign], self._take_kind("text")[1:-1]))
                self._take(",")
        return lambda labels: all(test(labels.get(key, ""), value) for key, test, value in wanted)

    def _function(self, name: str) -> Evaluation:
        if name not in _FUNCTIONS:
            raise NotEvaluatedError(f"the function {name} is not known here")
        self._require("(")
        metric = self._take_kind("word")
        matches = self._selector(metric)
        self._require("[")
        seconds = parse_duration(self._take_kind("duration"))
        for closing in ("]", ")"):
            self._require(closing)

        def evaluate(scrapes: Scrapes, number: int) -> Vector:
            points = scrapes.window(number, seconds, metric, matches)
            found = ((_unnamed(s), _FUNCTIONS[name](each, seconds)) for s, each in points.items())
            return {series: value for series, value in found if value is not None}

        return evaluate

    def _aggregation(self, reckon: Callable[[list[float]], float]) -> Evaluation:
        by, labels = self._grouping()
        inner = self._in_parentheses()
        if not by:
            by, labels = self._grouping()
        if isinstance(inner, float):
            raise NotEvaluatedError(f"{inner:g} is no series")

        def evaluate(scrapes: Scrapes, number: int) -> Vector:
            groups: defaultdict[Labels, list[float]] = defaultdict(list)
            for series, value in inner(scrapes, number).items():
                kept = (e for e in _unnamed(series) if (e[0] in labels) is (by != "without"))
                groups[tuple(kept)].append(value)
            return {series: reckon(values) for series, values in groups.items()}

        return evaluate

    def _grouping(self) -> tuple[str, set[str]]:
        """Parse the labels after an aggregation's ``by`` or ``without``."""
        labels = set()
        if by := self._take("by", "without"):
            self._require("(")
            while not self._take(")"):
                labels.add(self._take_kind("word"))
                self._take(",")
        return by, labels


# -- joining --------------------------------------------------------------------------------------


def _unnamed(series: Labels) -> Labels:
    return tuple(each for each in series if each[0] != NAME)


def _joined(sign: str, left: Operand, right: Operand) -> Operand:
    """Combine two operands with an operator; return the resulting operand."""
    if isinstance(left, float) and isinstance(right, float) and sign in _ARITHMETIC:
        return _ARITHMETIC[sign](left, right)
    numbers = isinstance(left, float) + isinstance(right, float)
    if numbers == 2 or (numbers and sign in _SETS):
        raise NotEvaluatedError(f"{sign!r} needs series, not numbers")

    def evaluate(scrapes: Scrapes, number: int) -> Vector:
        sides: list[Any] = [
            each if isinstance(each, float) else each(scrapes, number) for each in (left, right)
        ]
        one, other = sides
        if sign in _SETS:
            return _of_sets(sign, one, other)
        pairs = _pairs(sign, one, other)
        if sign in _ARITHMETIC:
            return {_unnamed(series): _ARITHMETIC[sign](a, b) for series, a, b in pairs}
        true = [each for each in pairs if _COMPARING[sign](*each[1:])]
        return {series: b if isinstance(one, float) else a for series, a, b in true}

    return evaluate


def _of_sets(sign: str, one: Vector, other: Vector) -> Vector:
    there = set(map(_unnamed, one if sign == "or" else other))
    if sign == "or":
        return one | {series: v for series, v in other.items() if _unnamed(series) not in there}
    return {
        series: v for series, v in one.items() if (_unnamed(series) in there) is (sign == "and")
    }


def _pairs(sign: str, one: Any, other: Any) -> list[tuple[Labels, float, float]]:  # noqa: ANN401
    """Return the series that match on both sides of an operator, with the values of both sides.

    A plain number matches every series of the other side.
    """
    if isinstance(one, float):
        return [(series, one, value) for series, value in other.items()]
    if isinstance(other, float):
        return [(series, value, other) for series, value in one.items()]
    partners = {_unnamed(series): value for series, value in other.items()}
    if len(partners) < len(other):
        raise NotEvaluatedError(f"several series to the right of {sign!r} match the same one")
    matched = ((series, value, partners.get(_unnamed(series))) for series, value in one.items())
    return [(series, value, partner) for series, value, partner in matched if partner is not None]
