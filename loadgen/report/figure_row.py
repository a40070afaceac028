"""One row of a run's table, in the terminal and in the report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class FigureRow:
    """One measure of all runs.

    Attributes:
        group: What the measure belongs to; rows of one group stand together.
        measure: What is measured, with its statistic.
        cells: One text per run, in the order of the runs.
        alarming: Which cells are failures.
    """

    group: str
    measure: str
    cells: Sequence[str]
    alarming: Sequence[bool]
