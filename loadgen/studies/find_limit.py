"""Bisects a setting between two ends for the last value whose expectations are met."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadgen.errors import LoadgenError, UsageError
from loadgen.places.experiment import experiment
from loadgen.studies.points import figure_text, run_job
from loadgen.studies.sweep import SHOWN
from loadgen.studies.varied import spaced

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadgen.studies.points import Experiment, Point, Study, Value
    from loadgen.studies.varied import Range

_MOST_PROBES = 60
"""A limit at 0 is never close enough: no bracket is a small share of it."""
_PROBED = ("clients.back.rate", "clients.back.p99", "requests.refused.rate")


@dataclass(frozen=True)
class Limit:
    """The answer.

    Attributes:
        kind: ``highest`` or ``smallest`` value that passes; ``all`` or ``none`` of both ends do.
        passes, fails: The bracket: the last values of each kind; None if there is none.
        probes: All that was tried, in order.
    """

    kind: str
    passes: Value
    fails: Value
    probes: tuple[tuple[Value, bool], ...]

    @property
    def sentence(self) -> str:
        """The answer with its bracket."""
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
    """Find where passing ends between two values.

    Args:
        study: The document, and where it runs.
        wanted: The path of the setting, and the two ends.
        precision: The bracket is at most this share of the value that passes.
        on_probe: Told of each run.
        run: Runs a document.

    Raises:
        UsageError: The document expects nothing, or does not take a value.
        LoadgenError: A run says nothing of expectations, by its exit code, or could not be made.
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
    """Say in a line what came of a probe."""
    figures = ", ".join(f"{SHOWN[n]} {figure_text(n, point.figures[n])}" for n in _PROBED)
    return f"{point.place}: {'; '.join((point.word, *point.missed))} ({figures})"


def bisect(wanted: Range, passes: Callable[[Value], bool], precision: float) -> Limit:
    """Find where passing ends; which of both ends passes decides what is looked for.

    Args:
        wanted: The ends.
        passes: Tries a value as a document has it.
        precision: The bracket is at most this share of the value that passes; of whole numbers it
            is never under 1.
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
    # Of whole numbers the next one is near enough, and nothing lies between both.
    step = 1 if wanted.whole else 0.0
    while len(probes) < _MOST_PROBES and abs(good - bad) > max(abs(good) * precision, step):
        middle = wanted.exact(spaced(min(good, bad), max(good, bad), 3)[1])
        good, bad = (middle, bad) if tried(middle) else (good, middle)
    kind = "highest" if low_passes else "smallest"
    return Limit(kind, wanted.written(good), wanted.written(bad), tuple(probes))
