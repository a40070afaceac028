"""Thresholds: ``list{family=cpp}.response.p99 < 2s``, as text and as values.

``SUBJECT[{KEY=VALUE,...}].MEASURE OPERATOR VALUE``. Every mistake is one sentence that quotes the
expression and names the nearest thing that there is.
"""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from loadgen.analysis.measures import (
    SELECTORS,
    SERVERS,
    Measure,
    Unit,
    measures_of,
    subjects,
)
from loadgen.errors import UsageError
from loadgen.units import format_bytes, format_count, format_seconds, parse_size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
EXAMPLE = "list.response.p99 < 2s"
LIMIT = "limit"
"""The value that stands for the server's own limit."""

_FORM = re.compile(
    r"^\s*(?P<subject>[\w-]+)\s*(?:\{(?P<selectors>[^{}]*)\})?\s*\.\s*(?P<measure>[\w.-]+?)\s*"
    r"(?P<operator>[<>=!]+)\s*(?P<value>[^<>=!]+?)\s*$"
)
_PERCENTILE = re.compile(r"^(?P<what>\w+)\.p(?P<share>\d+(?:\.\d+)?)$")
_NUMBER = re.compile(r"^(\d+(?:\.\d+)?)\s*(\S*)$")
_SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0}
_LONGEST_QUOTE = 80


@dataclass(frozen=True)
class Threshold:
    """One threshold.

    Attributes:
        text: The expression as it was written.
        subject: An operation, ``requests``, ``clients``, ``broker`` or ``proxy``.
        measure: What is measured of it; its name has ``pN`` for any percentile.
        percentile: The share that a percentile stands for, from 0 to 1; else None.
        operator: How both sides are compared.
        value: What with, in the measure's unit; None is the server's own limit.
        selectors: Which requests or clients count, by column.
    """

    text: str
    subject: str
    measure: Measure
    operator: str
    value: float | None
    percentile: float | None = None
    selectors: tuple[tuple[str, str], ...] = ()

    def holds(self, found: float, limit: float | None = None) -> bool:
        """Return whether a figure passes; ``limit`` is the server's own."""
        wanted = limit if self.value is None else self.value
        return wanted is not None and OPERATORS[self.operator](found, wanted)


def parse_thresholds(texts: Iterable[str]) -> tuple[Threshold, ...]:
    """Return the thresholds of expressions, each once.

    Raises:
        UsageError: One of them cannot be understood.
    """
    return tuple(parse_threshold(text) for text in dict.fromkeys(texts))


def parse_threshold(text: str) -> Threshold:
    """Return the threshold of an expression.

    Raises:
        UsageError: It cannot be understood.
    """
    found = _FORM.match(text)
    if found is None:
        raise _mistake(text, f"it is not of the form SUBJECT.MEASURE OPERATOR VALUE as {EXAMPLE}")
    subject = found["subject"]
    _require_known(text, "there is no subject", subject, subjects())
    if found["operator"] not in OPERATORS:
        raise _mistake(text, f"{found['operator']} is none of {' '.join(OPERATORS)}")
    measure, percentile = _measure(text, subject, found["measure"])
    return Threshold(
        text=" ".join(text.split()),
        subject=subject,
        measure=measure,
        operator=found["operator"],
        value=_value(text, measure, found["value"]),
        percentile=percentile,
        selectors=_selectors(text, subject, found["selectors"]),
    )


def _mistake(text: str, reason: str) -> UsageError:
    quoted = text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}..."
    return UsageError(f"threshold {quoted!r}: {reason}")


def _require_known(text: str, sentence: str, name: str, known: Iterable[str]) -> None:
    names = list(known)
    if name in names:
        return
    near = get_close_matches(name, names, 1, 0.5)
    remedy = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
    raise _mistake(text, f"{sentence} {name}; {remedy}")


def _measure(text: str, subject: str, name: str) -> tuple[Measure, float | None]:
    measures = {each.name: each for each in measures_of(subject)}
    found = _PERCENTILE.match(name)
    if found is None or f"{found['what']}.pN" not in measures:
        _require_known(text, f"{subject} has no", name, measures)
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
        _require_known(text, "nothing can be selected by", key, SELECTORS)
        if key in chosen:
            raise _mistake(text, f"{key} is selected twice: write a threshold for each")
        chosen[key] = value
    return tuple(chosen.items())


def _value(text: str, measure: Measure, written: str) -> float | None:
    if written == LIMIT:
        if measure.limited:
            return None
        raise _mistake(
            text, f"{measure.name} has no limit of its own: write {_FORMS[measure.unit]}"
        )
    try:
        return _READERS[measure.unit](written)
    except (UsageError, ValueError, KeyError):
        needed = f"is measured in {measure.unit}: write {_FORMS[measure.unit]}, not {written}"
        raise _mistake(text, f"{measure.name} {needed}") from None


def _number(written: str) -> tuple[float, str]:
    found = _NUMBER.match(written)
    if found is None:
        raise ValueError(written)
    return float(found[1]), found[2]


def _seconds(written: str) -> float:
    number, unit = _number(written)
    return number * _SECONDS[unit]


def _share(written: str) -> float:
    number, unit = _number(written)
    if unit != "%" or number > 100:
        raise ValueError(written)
    return number / 100


def _count(written: str) -> float:
    number, unit = _number(written.replace(",", ""))
    if unit or number != int(number):
        raise ValueError(written)
    return number


_READERS: dict[Unit, Callable[[str], float]] = {
    Unit.SECONDS: _seconds,
    Unit.SHARE: _share,
    Unit.COUNT: _count,
    Unit.BYTES: lambda written: parse_size("", written),
}
_FORMS = {
    Unit.SECONDS: "2s, 250ms or 1min",
    Unit.SHARE: "0.1%",
    Unit.COUNT: "a whole number",
    Unit.BYTES: "1GiB, 512MB or a number of bytes",
}


def in_words(unit: Unit, value: float) -> str:
    """Write a figure as a table shows it."""
    if unit is Unit.SHARE:
        return f"{value * 100:.3g} %"
    words = {Unit.SECONDS: format_seconds, Unit.COUNT: format_count, Unit.BYTES: format_bytes}
    return words[unit](value)
