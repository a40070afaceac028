"""Counters: how many requests of a task ended, and how."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loadgen.clients.records import Outcome


@dataclass(slots=True)
class StormCounters:
    """Totals of one task, or of a whole storm. ``bytes`` are those read of answers."""

    connected: int = 0
    started: int = 0
    answered: int = 0
    refused: int = 0
    wrong: int = 0
    timeout: int = 0
    disconnected: int = 0
    unreachable: int = 0
    bytes: int = 0

    def count(self, outcome: Outcome) -> None:
        """Count a request that ended."""
        setattr(self, outcome.value, getattr(self, outcome.value) + 1)

    def plus(self, other: StormCounters) -> StormCounters:
        """Return the sum of both."""
        return StormCounters(
            *(getattr(self, each.name) + getattr(other, each.name) for each in fields(self))
        )
