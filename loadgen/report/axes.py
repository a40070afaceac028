"""The axes of charts: where values are, and which of them have a label."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadgen.results.units import Unit
from loadgen.units import MB_BYTES, format_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

_TICKS = 5
_STEPS = (1.0, 2.0, 5.0, 10.0)
_TIMES = {"s": 1.0, "ms": 1e-3, "µs": 1e-6}
_PERCENTILES = (0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999)


@dataclass(frozen=True)
class Axis:
    """One axis: its ends, and its labelled values."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    log: bool = False

    def share(self, value: float) -> float:
        """Return a value's place, 0 at the low end and 1 at the high end; beyond is at the end."""
        low, high = self.low, self.high
        if self.log:
            value, low, high = (math.log10(max(each, 1e-12)) for each in (value, low, high))
        return min(1.0, max(0.0, (value - low) / (high - low)))


def linear_axis(high: float, unit: Unit, *, low: float = 0.0, exact: bool = False) -> Axis:
    """Return an axis with round labels, which ends at one of them unless its end is exact."""
    one = MB_BYTES if unit is Unit.BYTES and high >= MB_BYTES else 1.0
    step = round_step(max(high - low, 1e-9) / one / _TICKS) * one
    if unit is Unit.COUNT:
        step = max(1.0, step)
    first, last = math.ceil(round(low / step, 9)), math.floor(round(high / step, 9))
    if not exact:
        first, last = math.floor(round(low / step, 9)), math.ceil(round(high / step, 9))
        low, high = first * step, max(last, first + 1) * step
    ticks = tuple((n * step, tick_label(n * step, unit)) for n in range(first, last + 1))
    return Axis(low, high if high > low else low + 1.0, ticks or ((low, tick_label(low, unit)),))


def logarithmic_axis(values: Sequence[float], unit: Unit) -> Axis:
    """Return an axis of whole powers of ten, at most six of them, around positive values."""
    top = math.ceil(round(math.log10(max(values, default=1.0)), 9))
    bottom = math.floor(round(math.log10(min(values, default=0.1)), 9))
    bottom = max(min(bottom, top - 1), top - 6)
    powers = range(bottom, top + 1)
    return Axis(
        10.0**bottom,
        10.0**top,
        tuple((10.0**n, tick_label(10.0**n, unit)) for n in powers),
        log=True,
    )


def percentile_axis(high: float) -> Axis:
    """Return the axis of shares: equal room for 0, 90, 99 and 99.9 %.

    Source: the scale of HdrHistogram's percentile plots.
    """
    high = max(high, 1.0)
    found = [(percentile_place(each), f"{each * 100:.10g} %") for each in _PERCENTILES]
    return Axis(0.0, high, tuple(each for each in found if each[0] <= high))


def percentile_place(share: float) -> float:
    """Return the x of a share on the axis of percentiles."""
    return -math.log10(1 - share)


def round_step(at_least: float) -> float:
    """Return the next of 1, 2, 5, 10, 20, ..., however small."""
    power = 10.0 ** math.floor(math.log10(at_least))
    return next(step * power for step in _STEPS if step * power >= at_least * (1 - 1e-9))


def tick_label(value: float, unit: Unit) -> str:
    """Return the label of a round value, as short as it goes."""
    if unit is Unit.SHARE:
        return f"{value * 100:.4g} %"
    if not value:
        return "0"
    if unit is Unit.SECONDS:
        name = next((each for each, size in _TIMES.items() if abs(value) >= size), "µs")
        return f"{value / _TIMES[name]:,.10g} {name}"
    if unit is Unit.BYTES:
        return f"{value / MB_BYTES:,.4g} MB" if value >= MB_BYTES / 10 else format_bytes(value)
    return f"{value:,.10g}{'/s' if unit is Unit.RATE else ''}"
