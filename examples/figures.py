"""Statistics of the examples' results, and their text: percentiles, medians and ranges."""

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
    """The admission policies that an example runs: fifo, fair, or both."""

    FIFO = "fifo"
    FAIR = "fair"
    BOTH = "both"

    @property
    def policies(self) -> tuple[AdmissionPolicy, ...]:
        """The chosen admission policies, fifo first."""
        return tuple(AdmissionPolicy) if self is PolicyChoice.BOTH else (AdmissionPolicy(self),)


@dataclass(frozen=True, slots=True)
class WaitFigures:
    """Figures on the waits of a group of requests, and on how many were completed or refused.

    A request that is refused after a wait counts with its wait, so refusals do not shorten the
    figures. A request that is refused because the queue is full counts with a wait of 0.

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
        """The number of requests that were not completed."""
        return self.timed_out + self.queue_full + self.stalled


def wait_figures(waits: npt.NDArray[np.float64], endings: npt.NDArray[np.int64]) -> WaitFigures:
    """Summarize the waits of requests; ``endings`` has the outcome of each request."""
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
    """Return the smallest value that at least ``percent`` of the values do not exceed.

    The result is 0 if there are no values.
    """
    if not len(values):
        return 0.0
    return float(np.percentile(values, percent, method="inverted_cdf"))


def with_range(values: Sequence[float], write: Callable[[float], str]) -> str:
    """Format the median of values, followed by their range in brackets if its ends differ."""
    low, middle, high = write(min(values)), write(median(values)), write(max(values))
    return middle if low == high else f"{middle} ({low} to {high})"


def format_wait(seconds: float) -> str:
    """Format a wait in seconds or, below one second, in milliseconds; no wait is ``0 s``."""
    if seconds == 0:
        return "0 s"
    return f"{seconds:.3f} s" if seconds < 1 else f"{seconds:.2f} s"


def format_count(value: float) -> str:
    """Format a whole number with thousands separators."""
    return f"{value:,.0f}"


def format_part(part: float) -> str:
    """Format a fraction between 0 and 1 as a percentage."""
    return f"{100 * part:.1f} %"
