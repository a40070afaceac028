"""The part of PromQL that rules of alerts use: parsed once, asked of each scrape.

What is beyond it is refused by name: ``promtool`` knows all of it.
"""

from __future__ import annotations

import math
import operator
import re
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

from loadgen.alerts.scrapes import NAME, increase, over_time, rate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from loadgen.alerts.scrapes import Labels, Matches, Scrapes, Vector

    Value = float | Vector
    Asked = Callable[[Scrapes, int], Any]
    Key = Callable[[Labels], Labels]

_TOKEN = re.compile(
    r"\s+|#[^\n]*|(?P<duration>\d+(?:ms|[smhdwy])(?:\d+(?:ms|[smhdwy]))*)"
    r"|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<word>[A-Za-z_:][\w:]*)"
    r"|(?P<text>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')|(?P<sign>==|!=|>=|<=|=~|!~|[-+*/%^<>=(){}\[\],@])"
)
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800, "y": 31_536_000}
_PART = re.compile(r"(\d+)(ms|[smhdwy])")
_LEVELS = (
    ("or",),
    ("and", "unless"),
    ("==", "!=", "<=", "<", ">=", ">"),
    ("+", "-"),
    ("*", "/", "%"),
)
"""Operators from those that bind least; all of them go from the left."""


def _divided(one: float, other: float) -> float:
    """Divide as floats of IEEE 754 do."""
    if other:
        return one / other
    return math.nan if not one or math.isnan(one) else math.copysign(math.inf, one)


_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divided,
    "%": lambda one, other: math.fmod(one, other) if other else math.nan,
}
_COMPARING: dict[str, Callable[[float, float], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<=": operator.le, "<": operator.lt,
    ">=": operator.ge, ">": operator.gt,
}  # fmt: skip
_OF_RANGES: dict[str, Callable[[Any, float], float | None]] = {
    "rate": rate,
    "increase": increase,
    "max_over_time": over_time(max),
    "min_over_time": over_time(min),
    "avg_over_time": over_time(fmean),
    "sum_over_time": over_time(math.fsum),
    "count_over_time": over_time(lambda values: float(len(values))),
    "last_over_time": over_time(lambda values: values[-1]),
}
_TOGETHER: dict[str, Callable[[list[float]], float]] = {
    "sum": math.fsum, "max": max, "min": min, "avg": fmean,
    "count": lambda values: float(len(values)),
}  # fmt: skip
_MATCHING: dict[str, Callable[[str, str], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "=~": lambda value, pattern: re.fullmatch(pattern, value) is not None,
    "!~": lambda value, pattern: re.fullmatch(pattern, value) is None,
}


class NotEvaluatedError(ValueError):
    """An expression uses what is not known here; the message says what."""


class Expression(NamedTuple):
    """An expression: the metrics that it names, and what it says of a scrape."""

    metrics: frozenset[str]
    ask: Asked


def parse_promql(text: str) -> Expression:
    """Read an expression.

    Raises:
        NotEvaluatedError: It is none, or more than this module knows.
    """
    parser = _Parser(text)
    ask = parser.whole()
    return Expression(frozenset(parser.metrics), ask)


class _Parser:
    """Reads an expression from the left. Mutable state: what is left of it, metrics so far."""

    def __init__(self, text: str) -> None:
        self.metrics: set[str] = set()
        self._tokens: list[tuple[str, str]] = []
        at = 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                raise NotEvaluatedError(f"{text[at : at + 20]!r} is not understood")
            at = found.end()
            if found.lastgroup:
                self._tokens.append((found.lastgroup, found[0]))
        self._tokens = [*reversed(self._tokens)]

    def whole(self) -> Asked:
        """Read all of it."""
        asked = self._binary(0)
        if self._tokens:
            raise NotEvaluatedError(f"{self._next!r} is not understood")
        return asked

    # -- tokens -------------------------------------------------------------------------------

    @property
    def _next(self) -> str:
        return self._tokens[-1][1] if self._tokens else ""

    def _take(self, *wanted: str) -> str:
        """Take the next token if it is one of these; an empty one if it is not."""
        return self._tokens.pop()[1] if self._tokens and self._next in wanted else ""

    def _taken(self, wanted: str) -> None:
        if not self._take(wanted):
            raise NotEvaluatedError(f"{self._next or 'the end'!r} stands where {wanted} should")

    def _taken_as(self, kind: str) -> str:
        if not self._tokens or self._tokens[-1][0] != kind:
            raise NotEvaluatedError(f"{self._next or 'the end'!r} is no {kind}")
        return self._tokens.pop()[1]

    def _labels(self) -> tuple[str, ...]:
        self._taken("(")
        found = []
        while not self._take(")"):
            found.append(self._taken_as("word"))
            self._take(",")
        return tuple(found)

    # -- expressions --------------------------------------------------------------------------

    def _binary(self, level: int) -> Asked:
        if level == len(_LEVELS):
            return self._operand()
        left = self._binary(level + 1)
        while sign := self._take(*_LEVELS[level]):
            if self._next in ("bool", "group_left", "group_right"):
                raise NotEvaluatedError(f"{self._next!r} is not known here")
            key: Key = _unnamed
            keeps = False
            if by := self._take("on", "ignoring"):
                key, keeps = _key_of(by == "on", self._labels()), by == "on"
            if self._next in ("group_left", "group_right"):
                raise NotEvaluatedError(f"{self._next!r} is not known here")
            right = self._binary(level + 1)
            left = _joined(sign, left, right, key, keeps=keeps)
        return left

    def _operand(self) -> Asked:
        if self._take("("):
            inner = self._binary(0)
            self._taken(")")
            return inner
        if self._take("-"):
            return _joined("-", _number(0.0), self._operand(), _unnamed, keeps=False)
        kind = self._tokens[-1][0] if self._tokens else ""
        if kind == "number":
            return _number(float(self._tokens.pop()[1]))
        word = self._taken_as("word")
        if word in _TOGETHER:
            return self._together(_TOGETHER[word])
        return self._function(word) if self._next == "(" else self._selector(word)

    def _matches(self) -> Matches | None:
        """Read what a selector says of labels behind the name of its metric."""
        wanted: list[tuple[str, Callable[[str, str], bool], str]] = []
        if self._take("{"):
            while not self._take("}"):
                label, sign = self._taken_as("word"), self._taken_as("sign")
                if sign not in _MATCHING:
                    raise NotEvaluatedError(f"{sign!r} compares no label")
                wanted.append((label, _MATCHING[sign], self._taken_as("text")[1:-1]))
                self._take(",")
        if not wanted:
            return None
        return lambda labels: all(test(labels.get(key, ""), value) for key, test, value in wanted)

    def _selector(self, metric: str) -> Asked:
        self.metrics.add(metric)
        matches = self._matches()
        if self._next in ("[", "offset", "@"):
            raise NotEvaluatedError(f"{self._next!r} is not known here")
        return lambda scrapes, number: scrapes.instant(number, metric, matches)

    def _function(self, name: str) -> Asked:
        if name not in _OF_RANGES:
            raise NotEvaluatedError(f"the function {name} is not known here")
        self._taken("(")
        metric = self._taken_as("word")
        self.metrics.add(metric)
        matches = self._matches()
        self._taken("[")
        seconds = parse_duration(self._taken_as("duration"))
        for closing in ("]", ")"):
            self._taken(closing)
        reckon = _OF_RANGES[name]

        def ask(scrapes: Scrapes, number: int) -> Vector:
            points = scrapes.window(number, seconds, metric, matches)
            found = ((_unnamed(s), reckon(each, seconds)) for s, each in points.items())
            return {series: value for series, value in found if value is not None}

        return ask

    def _together(self, reckon: Callable[[list[float]], float]) -> Asked:
        by = self._take("by", "without")
        labels = self._labels() if by else ()
        self._taken("(")
        inner = self._binary(0)
        self._taken(")")
        if not by and (by := self._take("by", "without")):
            labels = self._labels()
        key = _key_of(by != "without", labels)

        def ask(scrapes: Scrapes, number: int) -> Vector:
            groups: dict[Labels, list[float]] = {}
            for series, value in inner(scrapes, number).items():
                groups.setdefault(key(series), []).append(value)
            return {series: reckon(values) for series, values in groups.items()}

        return ask


def parse_duration(text: str) -> float:
    """Return the seconds of ``1m30s``."""
    return sum(int(count) * _UNITS[unit] for count, unit in _PART.findall(text))


# -- values ---------------------------------------------------------------------------------------


def _number(value: float) -> Asked:
    return lambda scrapes, number: value


def _unnamed(series: Labels) -> Labels:
    return tuple(each for each in series if each[0] != NAME)


def _key_of(on: bool, labels: tuple[str, ...]) -> Key:
    return lambda series: tuple(e for e in _unnamed(series) if (e[0] in labels) is on)


def _joined(sign: str, left: Asked, right: Asked, key: Key, *, keeps: bool) -> Asked:
    """Return an operator's result; series of both sides are matched by a part of their labels."""

    def ask(scrapes: Scrapes, number: int) -> Value:
        one, other = left(scrapes, number), right(scrapes, number)
        if sign in ("and", "or", "unless"):
            return _of_sets(sign, one, other, key)
        if isinstance(one, dict) and isinstance(other, dict):
            return _matched(sign, one, other, key, keeps=keeps)
        return _with_number(sign, one, other)

    return ask


def _of_sets(sign: str, one: Any, other: Any, key: Key) -> Vector:  # noqa: ANN401
    if not isinstance(one, dict) or not isinstance(other, dict):
        raise NotEvaluatedError(f"{sign!r} is of series, not of numbers")
    there = {key(series) for series in (one if sign == "or" else other)}
    if sign == "or":
        return {**one, **{series: v for series, v in other.items() if key(series) not in there}}
    return {series: v for series, v in one.items() if (key(series) in there) is (sign == "and")}


def _matched(sign: str, one: Vector, other: Vector, key: Key, *, keeps: bool) -> Vector:
    partners: dict[Labels, float] = {}
    for series, value in other.items():
        if key(series) in partners:
            raise NotEvaluatedError(f"several series at the right of {sign!r} match one")
        partners[key(series)] = value
    found: Vector = {}
    for series, value in one.items():
        if (partner := partners.get(key(series))) is None:
            continue
        if sign in _COMPARING:
            if _COMPARING[sign](value, partner):
                found[series] = value
        else:
            found[key(series) if keeps else _unnamed(series)] = _ARITHMETIC[sign](value, partner)
    return found


def _with_number(sign: str, one: Any, other: Any) -> Value:  # noqa: ANN401 - a number, or one is
    vector: Mapping[Labels, float] = one if isinstance(one, dict) else other
    if sign in _COMPARING:
        if not isinstance(vector, dict):
            raise NotEvaluatedError("two numbers are compared")
        test = _COMPARING[sign]
        pairs = {s: (v, other) if isinstance(one, dict) else (one, v) for s, v in vector.items()}
        return {series: vector[series] for series, pair in pairs.items() if test(*pair)}
    reckon = _ARITHMETIC[sign]
    if isinstance(one, dict):
        return {_unnamed(series): reckon(value, other) for series, value in one.items()}
    if isinstance(other, dict):
        return {_unnamed(series): reckon(one, value) for series, value in other.items()}
    return reckon(one, other)
