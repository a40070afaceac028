"""Occurrences of a fault among matching commands, by count and seeded sequence, without a clock."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from server.faults.fault import When


class Schedule:
    """Decides on successive commands.

    Attributes:
        seen: Matching commands.
        fired: Commands with the fault.
    """

    def __init__(self, when: When) -> None:
        self._when = when
        self._random = Random(when.seed)
        self.seen = 0
        self.fired = 0

    @property
    def over(self) -> bool:
        """True if no further occurrence follows."""
        return self._when.times is not None and self.fired >= self._when.times

    def due(self) -> bool:
        """Count a command; return True if it has the fault."""
        when, index = self._when, self.seen - self._when.after
        self.seen += 1
        if self.over or index < 0 or index % when.every:
            return False
        if when.probability < 1.0 and self._random.random() >= when.probability:
            return False
        self.fired += 1
        return True
