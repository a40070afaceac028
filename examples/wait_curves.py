"""A chart of waits: for each number of seconds, the share of requests that wait longer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from limiter.admission.rules import AdmissionPolicy
from loadgen.errors import write_text
from loadgen.report.charts import Chart, Series
from loadgen.report.drawing import picture
from loadgen.results.units import Unit

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy.typing as npt

    from examples.replies import Requests, Run

LONGEST_SECONDS = 26.0
"""A little more than the timeout of a request."""
_GRID = np.linspace(0.0, LONGEST_SECONDS, 521)
_COLOURS = {AdmissionPolicy.FIFO: ("c0", 0), AdmissionPolicy.FAIR: ("c1", 1)}
_LEAST_PART = 1e-5
_SIZES = ("small", "large")


@dataclass(frozen=True, slots=True)
class WaitCurve:
    """The shares of a simulation's requests that wait longer than each time in ``_GRID``.

    Only requests with small replies count, or only those with large ones.
    """

    policy: AdmissionPolicy
    size: str
    longer: npt.NDArray[np.float64]


def curves_of(requests: Requests, run: Run, policy: AdmissionPolicy) -> list[WaitCurve]:
    """Return the two curves of a simulation: for small and for large replies."""
    curves = []
    for size, mask in zip(_SIZES, (~requests.large, requests.large), strict=True):
        waits = np.sort(run.waits[requests.measured & mask])
        longer = len(waits) - np.searchsorted(waits, _GRID, side="right")
        curves.append(WaitCurve(policy, size, longer / max(1, len(waits))))
    return curves


def draw_curves(curves: Sequence[WaitCurve], path: Path) -> None:
    """Draw curves into an SVG file: the median over the seeds as a line, the range as a band.

    Raises:
        LoadgenError: The file cannot be written.
    """
    longest = _longest_wait(curves)
    charts = [
        Chart(
            f"{size.capitalize()} replies: part of requests that waits longer",
            [
                _line(policy, parts)
                for policy in _COLOURS
                if (parts := _parts(curves, size, policy))
            ],
            Unit.SHARE,
            log=True,
            span=(0.0, longest),
            x_title="seconds waited for memory",
        )
        for size in _SIZES
    ]
    write_text(path, picture(charts))


def _parts(
    curves: Sequence[WaitCurve], size: str, policy: AdmissionPolicy
) -> list[npt.NDArray[np.float64]]:
    return [each.longer for each in curves if each.size == size and each.policy is policy]


def _line(policy: AdmissionPolicy, parts: Sequence[npt.NDArray[np.float64]]) -> Series:
    low, middle, high = np.min(parts, axis=0), np.median(parts, axis=0), np.max(parts, axis=0)
    colour, dash = _COLOURS[policy]
    rows = np.stack((_GRID, np.maximum(low, _LEAST_PART), middle, high))[:, high > 0].T.tolist()
    return Series(
        policy.value,
        [(at, part) for at, _, part, _ in rows],
        colour=colour,
        dash=dash,
        between=[(at, least, most) for at, least, _, most in rows],
    )


def _longest_wait(curves: Sequence[WaitCurve]) -> float:
    """Return the end of the time axis in seconds, which is a little after the longest wait."""
    waited = [_GRID[curve.longer > 0] for curve in curves]
    return 1.05 * max(1.0, *(float(seconds[-1]) for seconds in waited if len(seconds)), 0.0)
