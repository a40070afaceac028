"""Of numbered things that end in any order: how many, from the first on, have ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class LowWater:
    """Counts what has ended without a gap.

    Bound: the numbers that have ended beyond the first gap, which are as many as are under way.
    """

    def __init__(self, first: int = 0, on_rise: Callable[[int], None] = lambda _: None) -> None:
        self.mark = first
        """All numbers below have ended."""
        self._beyond: set[int] = set()
        self._on_rise = on_rise

    def add(self, number: int) -> None:
        """Note that a number has ended."""
        self._beyond.add(number)
        before = self.mark
        while self.mark in self._beyond:
            self._beyond.remove(self.mark)
            self.mark += 1
        if self.mark > before:
            self._on_rise(self.mark)
