"""Bisects a key between two ends: the highest value that passes, or the smallest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadgen.sweeps.variation import Range, Value


_MOST_PROBES = 60
"""A limit at 0 is never close enough: no bracket is a small share of it."""


@dataclass(frozen=True)
class Limit:
    """The answer.

    Attributes:
        kind: ``highest`` or ``smallest`` value that passes; ``all`` or ``none`` of both ends do.
        passes, fails: The bracket: the last values of each kind.
        probes: All that was tried, in order.
    """

    kind: Literal["highest", "smallest", "all", "none"]
    passes: Value | None
    fails: Value | None
    probes: tuple[tuple[Value, bool], ...]

    @property
    def sentence(self) -> str:
        """The answer with its bracket."""
        if self.kind == "all":
            return "Both ends pass: there is no limit between them."
        if self.kind == "none":
            return "Neither end passes: there is no limit between them."
        return f"The {self.kind} value that passes is {self.passes}; {self.fails} does not."


def bisect(wanted: Range, passes: Callable[[Value], bool], precision: float) -> Limit:
    """Find where passing ends between two values.

    Args:
        wanted: The key and its ends. Which of both passes decides what is looked for.
        passes: Tries a value.
        precision: The bracket is at most this share of the value that passes; of whole numbers it
            is never under 1.
    """
    probes: list[tuple[Value, bool]] = []

    def tried(value: float) -> bool:
        exact: Value = int(value) if wanted.whole else value
        probes.append((exact, passes(exact)))
        return probes[-1][1]

    low_passes, high_passes = tried(wanted.low), tried(wanted.high)
    if low_passes == high_passes:
        return Limit("all" if low_passes else "none", None, None, tuple(probes))
    good, bad = (wanted.low, wanted.high) if low_passes else (wanted.high, wanted.low)
    while len(probes) < _MOST_PROBES and not _close(good, bad, precision, whole=wanted.whole):
        middle = _middle(good, bad, whole=wanted.whole)
        if tried(middle):
            good = middle
        else:
            bad = middle
    return Limit(
        "highest" if low_passes else "smallest",
        int(good) if wanted.whole else good,
        int(bad) if wanted.whole else bad,
        tuple(probes),
    )


def _close(good: float, bad: float, precision: float, *, whole: bool) -> bool:
    width = abs(good - bad)
    return width <= abs(good) * precision or (whole and width <= 1)


def _middle(good: float, bad: float, *, whole: bool) -> float:
    """Return the value between both, by their ratio where they are far apart: 10..1000 is 100."""
    low, high = sorted((good, bad))
    middle = math.sqrt(low * high) if low > 0 and high / low > 4 else (low + high) / 2
    if not whole:
        return middle
    return float(min(max(round(middle), low + 1), high - 1))
