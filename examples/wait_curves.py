"""A picture of waits: which part of the requests waits longer than so many seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from limiter.admission.rules import AdmissionPolicy

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy.typing as npt

    from examples.replies import Requests, Run

LONGEST_SECONDS = 26.0
"""A little more than the timeout of a request."""
_GRID = np.linspace(0.0, LONGEST_SECONDS, 1041)
_COLOURS = {AdmissionPolicy.FIFO: "#c24e00", AdmissionPolicy.FAIR: "#0067a5"}
_INK, _SOFT, _LINE = "#1b2430", "#5a6675", "#e3e7ec"
_SIZE_INCHES = (9.0, 3.8)
_DOTS_PER_INCH = 120
_LEAST_PART = 2e-5
_SIZES = ("small", "large")


@dataclass(frozen=True, slots=True)
class WaitCurve:
    """For one run and one size of reply: which part of its requests waits longer than ``_GRID``."""

    policy: AdmissionPolicy
    size: str
    longer: npt.NDArray[np.float64]


def curves_of(requests: Requests, run: Run, policy: AdmissionPolicy) -> list[WaitCurve]:
    """Return the curves of one run, of small and of large replies."""
    curves = []
    for size, mask in zip(_SIZES, (~requests.large, requests.large), strict=True):
        waits = np.sort(run.waits[requests.measured & mask])
        longer = len(waits) - np.searchsorted(waits, _GRID, side="right")
        curves.append(WaitCurve(policy, size, longer / max(1, len(waits))))
    return curves


def draw_curves(curves: Sequence[WaitCurve], path: Path) -> None:
    """Write the picture as a PNG: the median of the seeds as a line, their range as a band.

    Raises:
        OSError: It cannot be written there.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE_INCHES, layout="constrained")
    panels = figure.subplots(1, 2, sharey=True, sharex=True)
    longest = _longest_wait(curves)
    for axes, size in zip(panels, _SIZES, strict=True):
        axes.set_xlim(0, longest)
        _draw_size(axes, [curve for curve in curves if curve.size == size])
        axes.set_title(f"{size.capitalize()} replies", loc="left", color=_INK, fontsize=11)
        axes.set_xlabel("seconds waited for memory", color=_SOFT)
    panels[0].set_ylabel("part of requests that waits longer", color=_SOFT)
    panels[1].legend(frameon=False, labelcolor=_INK, loc="upper right")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=_DOTS_PER_INCH)


def _draw_size(axes: Any, curves: Sequence[WaitCurve]) -> None:  # noqa: ANN401 - matplotlib
    for policy, colour in _COLOURS.items():
        parts = [curve.longer for curve in curves if curve.policy is policy]
        if parts:
            # A curve ends where nobody waits longer: zero has no place on a logarithmic axis.
            middle = np.median(parts, axis=0)
            middle = np.where(middle > 0, middle, np.nan)
            low, high = np.min(parts, axis=0), np.max(parts, axis=0)
            axes.fill_between(
                _GRID, np.maximum(low, _LEAST_PART), high, color=colour, alpha=0.18, lw=0
            )
            axes.plot(_GRID, middle, color=colour, lw=2, label=policy.value)
    axes.set_yscale("log")
    axes.set_ylim(_LEAST_PART, 1.0)
    axes.set_yticks([1, 0.1, 0.01, 0.001, 0.0001], ["all", "10 %", "1 %", "0.1 %", "0.01 %"])
    axes.minorticks_off()
    axes.grid(axis="y", color=_LINE)
    axes.set_axisbelow(True)
    axes.tick_params(colors=_SOFT)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("bottom", "left"):
        axes.spines[side].set_color(_LINE)


def _longest_wait(curves: Sequence[WaitCurve]) -> float:
    """Return where the axis ends: a little beyond the longest wait."""
    waited = [_GRID[curve.longer > 0] for curve in curves]
    return 1.05 * max(1.0, *(float(seconds[-1]) for seconds in waited if len(seconds)), 0.0)
