"""``loadgen find-limit``: bisects a setting's range for the last value that meets expectations.

A value passes if the scenario meets its expectations with it.
"""

from __future__ import annotations

import math
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from pydantic import TypeAdapter, ValidationError

from loadgen.errors import LoadgenError, UsageError
from loadgen.places.experiment import experiment
from loadgen.plan.fields import Bytes, Moment, RateOrNone, Share, Speed
from loadgen.studies.points import SHOWN, figure_text, run_job

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadgen.studies.points import Experiment, Point, Study, Value

_MOST_PROBES = 60
"""Maximum number of runs in a search; near 0 the ends may never get close enough to stop."""
_FAR_APART = 4
_KINDS = [TypeAdapter[Any](each) for each in (Moment, RateOrNone, Share, Bytes, Speed)]
"""Types of a document's numbers that have units."""
_UNIT = re.compile(r"(?<=\d)\s*([a-zA-Z/%]+)$")
_PROBED = ("clients.back.rate", "clients.back.p99", "requests.refused.rate")


class Range(NamedTuple):
    """The path of a setting, and the two ends of the range to search."""

    path: str
    low: float
    high: float
    unit: str = ""

    @property
    def whole(self) -> bool:
        """True if only whole numbers of the setting are to be tried."""
        return not self.unit and self.low == int(self.low) and self.high == int(self.high)

    def exact(self, value: float) -> float | int:
        """Return a value, rounded to a whole number if only whole numbers are to be tried."""
        return round(value) if self.whole else value

    def written(self, value: float) -> Value:
        """Return a value as a scenario document has it: a number, or a text with a unit."""
        if not self.unit:
            return self.exact(value)
        # No unit may follow an exponent.
        return f"{np.format_float_positional(float(f'{value:.6g}'), trim='-')}{self.unit}"

    def spread(self, count: int) -> list[Value]:
        """Return ``count`` values spread over the range, both ends included."""
        return list(dict.fromkeys(map(self.written, spaced(self.low, self.high, count))))


def spaced(low: float, high: float, count: int) -> list[float]:
    """Return ``count`` values from low to high, in equal ratios if the ends are far apart."""
    far = low > 0 and high / low > _FAR_APART
    found: list[float] = (np.geomspace if far else np.linspace)(low, high, count).tolist()
    return found


def parse_range(text: str) -> Range:
    """Parse a path and a range, as in ``clients.all.count=10..1000`` or ``a.b=100kB/s..2MB/s``.

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
    """Parse the two ends of a range into numbers of a common unit.

    Raises:
        ValueError: The ends are not numbers, or their units are of different kinds.
    """
    units = [found[1] for each in (first, last) if (found := _UNIT.search(each.strip()))]
    for kind in _KINDS if units else ():
        with suppress(ValidationError):
            low, high, one = map(kind.validate_python, (first, last, f"1{units[0]}"))
            return low / one, high / one, units[0]
    return float(first), float(last), ""


@dataclass(frozen=True)
class Limit:
    """The result of a bisection: the last value that meets expectations, and the nearest other one.

    Attributes:
        kind: ``highest`` or ``smallest`` for the value that passes; ``all`` or ``none`` if both
            ends of the range pass or fail.
        passes, fails: The nearest tried values on the two sides of the limit; None without a limit.
        probes: All tried values in order, and whether each passed.
    """

    kind: str
    passes: Value
    fails: Value
    probes: tuple[tuple[Value, bool], ...]

    @property
    def sentence(self) -> str:
        """A sentence with the limit, or with the reason why there is none."""
        if self.kind == "all":
            return "Both ends pass: there is no limit between them."
        if self.kind == "none":
            return "Neither end passes: there is no limit between them."
        return f"The {self.kind} value that passes is {self.passes}; {self.fails} does not."


def find_limit(
    study: Study,
    wanted: Range,
    precision: float = 0.05,
    on_probe: Callable[[Point], None] = lambda point: None,
    run: Experiment = experiment,
) -> Limit:
    """Find the last value of a setting with which a scenario meets its expectations.

    Args:
        study: The scenario, and the place where it runs.
        wanted: The path of the setting, and the two ends of its range.
        precision: The search ends when the two nearest values differ by at most this share.
        on_probe: Called with the outcome of each run.
        run: Runs a scenario document.

    Raises:
        UsageError: The scenario has no expectation, or does not accept a value.
        LoadgenError: A run is unreliable, or could not be made; the exit code is that of the run.
    """
    if not study.job({}).document.expect:
        raise UsageError(
            f"{study.target} expects nothing, so no value can fail: add expectations, for "
            "example --set 'expect+=clients.back == 100%'"
        )

    def passes(value: Value) -> bool:
        point = run_job(study.job({wanted.path: value}), run)
        on_probe(point)
        if not point.valid:
            raise LoadgenError(
                f"no limit was found: at {point.place} {point.missed[0]}", point.level.exit_code
            )
        return point.passed

    return bisect(wanted, passes, precision)


def in_words(point: Point) -> str:
    """Return a line on the outcome of one tried value."""
    figures = ", ".join(f"{SHOWN[n]} {figure_text(n, point.figures[n])}" for n in _PROBED)
    return f"{point.place}: {'; '.join((point.verdict, *point.missed))} ({figures})"


def bisect(wanted: Range, passes: Callable[[Value], bool], precision: float) -> Limit:
    """Bisect a range for the limit between values that meet expectations and values that do not.

    It is the highest passing value if the low end passes, otherwise the lowest.

    Args:
        wanted: The setting and the two ends of its range.
        passes: Runs the scenario with a value; returns True if it meets its expectations.
        precision: The search ends when the two nearest values differ by at most this share and, for
            whole numbers, by at least 1.
    """
    probes: list[tuple[Value, bool]] = []

    def tried(value: float) -> bool:
        said = wanted.written(value)
        probes.append((said, passes(said)))
        return probes[-1][1]

    low, high = wanted.exact(wanted.low), wanted.exact(wanted.high)
    low_passes, high_passes = tried(low), tried(high)
    if low_passes == high_passes:
        return Limit("all" if low_passes else "none", None, None, tuple(probes))
    good, bad = (low, high) if low_passes else (high, low)
    # Between neighbours among whole numbers no value is left to try.
    step = 1 if wanted.whole else 0.0
    while len(probes) < _MOST_PROBES and abs(good - bad) > max(abs(good) * precision, step):
        middle = wanted.exact(spaced(min(good, bad), max(good, bad), 3)[1])
        good, bad = (middle, bad) if tried(middle) else (good, middle)
    kind = "highest" if low_passes else "smallest"
    return Limit(kind, wanted.written(good), wanted.written(bad), tuple(probes))
