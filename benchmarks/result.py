"""The result of a benchmark: figures over rounds, with their goals, and remarks."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True)
class BenchOptions:
    """The amount of measuring.

    Attributes:
        rounds: Interleaved rounds; a figure has one value a round.
        seconds: How long each side is measured in a round.
        full: Whether benchmarks with a large variant run that one.
        note: Told what is going on, for the progress display.
    """

    rounds: int = 7
    seconds: float = 2.0
    full: bool = False
    note: Callable[[str], None] = lambda _: None


@dataclass(frozen=True)
class Figure:
    """One measured quantity: a value for each round.

    Attributes:
        name: What was measured.
        unit: ``listings/s``, ``ms``, ``ratio`` and so on.
        values: One for each valid round, in order; at least one.
        goal: What the median should reach; None for a figure that only informs.
        at_most: Whether the goal is not to be exceeded, because less is better.
    """

    name: str
    unit: str
    values: Sequence[float]
    goal: float | None = None
    at_most: bool = False

    @property
    def median(self) -> float:
        """The median of the rounds."""
        return statistics.median(self.values)

    @property
    def met(self) -> bool | None:
        """True if the median reaches the goal; None without one."""
        if self.goal is None:
            return None
        return self.median <= self.goal if self.at_most else self.median >= self.goal

    def to_json(self) -> dict[str, Any]:
        """Return what the results file holds."""
        return {
            "name": self.name,
            "unit": self.unit,
            "median": self.median,
            "lowest": min(self.values),
            "highest": max(self.values),
            "values": list(self.values),
            "goal": self.goal,
            "at_most": self.at_most,
            "met": self.met,
        }


@dataclass(frozen=True)
class BenchResult:
    """Everything one benchmark found.

    Attributes:
        figures: The table's rows.
        remarks: Sentences below the table, such as how many rounds were invalid.
        rounds: What was measured in each round, invalid ones included.
    """

    figures: Sequence[Figure]
    remarks: Sequence[str] = ()
    rounds: Sequence[dict[str, Any]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return what the results file holds."""
        return {
            "figures": [figure.to_json() for figure in self.figures],
            "remarks": list(self.remarks),
            "rounds": list(self.rounds),
        }
