"""The result of a benchmark: figures over all rounds with their goals, and remarks."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True)
class BenchOptions:
    """The options of a benchmark run.

    Attributes:
        rounds: Number of rounds, in which sides are interleaved; a figure has a value per round.
        seconds: Duration of the measurement of each side in a round.
        full: Whether benchmarks run their large variant.
        note: Called with texts about progress.
    """

    rounds: int = 7
    seconds: float = 2.0
    full: bool = False
    note: Callable[[str], None] = lambda _: None


@dataclass(frozen=True)
class Figure:
    """A measured quantity, with a value for each round.

    Attributes:
        name: Name of the quantity.
        unit: ``listings/s``, ``ms``, ``ratio`` and so on.
        values: A value for each valid round, in order; at least one.
        goal: The goal for the median; None if the figure is only for information.
        at_most: Whether the goal is an upper bound, because less is better.
    """

    name: str
    unit: str
    values: Sequence[float]
    goal: float | None = None
    at_most: bool = False

    @property
    def median(self) -> float:
        """The median of the values of all rounds."""
        return statistics.median(self.values)

    @property
    def met(self) -> bool | None:
        """True if the median reaches the goal; None without a goal."""
        if self.goal is None:
            return None
        return self.median <= self.goal if self.at_most else self.median >= self.goal

    def to_json(self) -> dict[str, Any]:
        """Return the figure as an entry in the results file."""
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
    """The result of a benchmark.

    Attributes:
        figures: The figures, which are the rows of the table.
        remarks: Sentences below the table, such as the number of invalid rounds.
        rounds: The measurements of each round, including invalid rounds.
    """

    figures: Sequence[Figure]
    remarks: Sequence[str] = ()
    rounds: Sequence[dict[str, Any]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return the result as an entry in the results file."""
        return {
            "figures": [figure.to_json() for figure in self.figures],
            "remarks": list(self.remarks),
            "rounds": list(self.rounds),
        }
