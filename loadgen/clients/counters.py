"""Counters of requests by how they ended."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loadgen.clients.records import Outcome


@dataclass(slots=True)
class RequestCounters:
    """Totals of one task, or of a whole run. ``bytes`` are those read of answers."""

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

    def plus(self, other: RequestCounters) -> RequestCounters:
        """Return the sum of both."""
        return RequestCounters(
            *(getattr(self, each.name) + getattr(other, each.name) for each in fields(self))
        )
