"""Figures of the examples and their text: percentiles, medians and ranges."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from examples.simulation import Ending
from limiter.admission.rules import AdmissionPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

TERMINAL_COLUMNS = 100
SCHEMA_VERSION = 1


class PolicyChoice(StrEnum):
    """Policies of an example run."""

    FIFO = "fifo"
    FAIR = "fair"
    BOTH = "both"

    @property
    def policies(self) -> tuple[AdmissionPolicy, ...]:
        """Return the policies, fifo first."""
        return tuple(AdmissionPolicy) if self is PolicyChoice.BOTH else (AdmissionPolicy(self),)


@dataclass(frozen=True, slots=True)
class WaitFigures:
    """Waiting times and endings of a group's requests.

    A request refused after a wait counts with its wait, so refusals do not shorten the figures; a
    request refused at a full queue counts with 0.

    Units: requests, seconds.
    """

    requests: int
    completed: int
    timed_out: int
    queue_full: int
    stalled: int
    p50_seconds: float
    p99_seconds: float
    p999_seconds: float
    max_seconds: float

    @property
    def refused(self) -> int:
        """Return the number of unserved requests."""
        return self.timed_out + self.queue_full + self.stalled


def wait_figures(waits: npt.NDArray[np.float64], endings: npt.NDArray[np.int64]) -> WaitFigures:
    """Summarize the waits of a group; ``endings`` is each request's ending."""
    counts = np.bincount(endings, minlength=len(Ending))
    p50, p99, p999, longest = (percentile(waits, percent) for percent in (50, 99, 99.9, 100))
    return WaitFigures(
        requests=len(waits),
        completed=int(counts[Ending.COMPLETED]),
        timed_out=int(counts[Ending.TIMED_OUT]),
        queue_full=int(counts[Ending.QUEUE_FULL]),
        stalled=int(counts[Ending.STALLED]),
        p50_seconds=p50,
        p99_seconds=p99,
        p999_seconds=p999,
        max_seconds=longest,
    )


def percentile(values: npt.NDArray[np.float64], percent: float) -> float:
    """Return the least value that ``percent`` of all values do not exceed; 0 for no values."""
    if not len(values):
        return 0.0
    return float(np.percentile(values, percent, method="inverted_cdf"))


def with_range(values: Sequence[float], write: Callable[[float], str]) -> str:
    """Write the median, and the range in brackets where the values differ as written."""
    low, middle, high = write(min(values)), write(median(values)), write(max(values))
    return middle if low == high else f"{middle} ({low} to {high})"


def format_wait(seconds: float) -> str:
    """Write a wait in seconds, to the millisecond below a second; ``0 s`` for no wait."""
    if seconds == 0:
        return "0 s"
    return f"{seconds:.3f} s" if seconds < 1 else f"{seconds:.2f} s"


def format_count(value: float) -> str:
    """Write a whole number with thousands separators."""
    return f"{value:,.0f}"


def format_part(part: float) -> str:
    """Write a fraction as a percentage."""
    return f"{100 * part:.1f} %"
