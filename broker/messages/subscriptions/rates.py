"""Rates of deliveries, computed from counters once per period."""

from __future__ import annotations

from typing import NamedTuple


class Counters(NamedTuple):
    """Totals since the beginning, or rates per second."""

    messages_out: float = 0
    bytes_out: float = 0
    redelivered: float = 0
    acknowledged: float = 0


NOTHING = Counters()


class Rates:
    """Rates per second over the last whole period; 0 in the first (as upstream's statistics).

    Attributes:
        current: The rates.
    """

    __slots__ = ("_counted", "current")

    def __init__(self) -> None:
        self._counted = NOTHING
        self.current = NOTHING

    def update(self, counted: Counters, seconds: float) -> None:
        """End a period."""
        before, self._counted = self._counted, counted
        self.current = Counters(
            *((now - then) / seconds for now, then in zip(counted, before, strict=True))
        )
