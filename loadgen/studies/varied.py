"""The settings that a study varies, as the command line or a file names them, and their values."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from pydantic import TypeAdapter, ValidationError

from loadgen.documents.tree import parse_values
from loadgen.errors import UsageError
from loadgen.plan.fields import Bytes, Moment, RateOrNone, Share, Speed

if TYPE_CHECKING:
    from pathlib import Path

    from loadgen.studies.points import Value

MOST_POINTS = 10_000
_FAR_APART = 4
_KINDS = [TypeAdapter[Any](each) for each in (Moment, RateOrNone, Share, Bytes, Speed)]
"""The numbers of a document that may have a unit."""
_UNIT = re.compile(r"(?<=\d)\s*([a-zA-Z/%]+)$")


class Varied(NamedTuple):
    """A setting by its path, and the values that it takes."""

    path: str
    values: tuple[Value, ...]


class Range(NamedTuple):
    """A setting by its path, and two ends in a unit; a plain number has none."""

    path: str
    low: float
    high: float
    unit: str = ""

    @property
    def whole(self) -> bool:
        """True if only whole numbers are between them."""
        return not self.unit and self.low == int(self.low) and self.high == int(self.high)

    def exact(self, value: float) -> float | int:
        """Return a value as it is tried."""
        return round(value) if self.whole else value

    def written(self, value: float) -> Value:
        """Return a value as a document has it: with a unit it is a text."""
        if not self.unit:
            return self.exact(value)
        # No unit stands behind an exponent.
        return f"{np.format_float_positional(float(f'{value:.6g}'), trim='-')}{self.unit}"

    def spread(self, count: int) -> list[Value]:
        """Return so many values, both ends among them."""
        return list(dict.fromkeys(map(self.written, spaced(self.low, self.high, count))))


def spaced(low: float, high: float, count: int) -> list[float]:
    """Return so many values from one to another: by their ratio where those are far apart."""
    far = low > 0 and high / low > _FAR_APART
    found: list[float] = (np.geomspace if far else np.linspace)(low, high, count).tolist()
    return found


def parse_range(text: str) -> Range:
    """Return the path and the ends of ``clients.all.count=10..1000``, or of ``100kB/s..2MB/s``.

    Raises:
        UsageError: The text is not of this form.
    """
    path, _, ends = text.partition("=")
    first, _, last = ends.partition("..")
    try:
        found = Range(path.strip(), *_ends(first, last))
    except ValueError:
        found = Range("", 0.0, 0.0)
    if not (found.path and math.isfinite(found.low) and math.isfinite(found.high)):
        raise UsageError(
            f"--vary {text[:80]!r} is not of the form PATH=LOW..HIGH: for example "
            "clients.all.count=10..1000, or with units of one kind 100kB/s..2MB/s"
        )
    if found.low >= found.high:
        raise UsageError(f"--vary {text[:80]!r}: the first end must be smaller than the second")
    return found


def _ends(first: str, last: str) -> tuple[float, float, str]:
    """Return two ends in the unit of one of them.

    Raises:
        ValueError: They are no numbers, or of units of two kinds.
    """
    units = [found[1] for each in (first, last) if (found := _UNIT.search(each.strip()))]
    for kind in _KINDS if units else ():
        with suppress(ValidationError):
            low, high, one = map(kind.validate_python, (first, last, f"1{units[0]}"))
            return low / one, high / one, units[0]
    return float(first), float(last), ""


def parse_varied(text: str) -> Varied:
    """Return the path and values of ``servers.profile=pulsar,floodgate`` or ``a.b=10..100/5``.

    Raises:
        UsageError: The text is not of one of these forms.
    """
    path, _, values = text.partition("=")
    if ".." in values:
        between, _, count = text.rpartition("/")
        if not count.isdecimal() or not 2 <= int(count) <= MOST_POINTS:
            raise UsageError(
                f"--vary {text[:80]!r} does not say how many values: write PATH=LOW..HIGH/COUNT, "
                "for example clients.all.count=10..1000/5"
            )
        found = parse_range(between)
        return Varied(found.path, tuple(found.spread(int(count))))
    row = parse_values(f"[{values}]", "--vary").plain()
    if not path.strip() or not isinstance(row, list) or not row:
        raise UsageError(
            f"--vary {text[:80]!r} is not of the form PATH=VALUE,VALUE: for example "
            "servers.broker.maxTopicListInFlightHeapMemSizeMB=10,20,50"
        )
    return Varied(path.strip(), tuple(row))


def parse_grid(text: str, file: Path) -> list[Varied]:
    """Return the paths and values of a YAML file ``PATH: [10, 20, 50]``.

    Raises:
        UsageError: The text is not of this form.
    """
    found = parse_values(text, str(file)).plain()
    rows = found.values() if isinstance(found, dict) else [None]
    if not all(isinstance(each, list) and each for each in rows):
        raise UsageError(f"--grid {file} is not a list of values for each path: PATH: [10, 20, 50]")
    return [Varied(path.strip(), tuple(values)) for path, values in found.items()]
