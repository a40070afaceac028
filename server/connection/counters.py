"""Counters of client connections, as plain numbers for the metrics.

Every method is a few additions, so that counting costs almost nothing on the hot path.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class ConnectionCounters:
    """Counts of connections that clients opened, that were accepted or refused, and that ended.

    Source: upstream's ConnectionMetrics; created_total may exceed success and failure together,
    because a connection may end without ever sending CONNECT.

    Attributes:
        errors: Commands answered with ERROR, by the name of Pulsar's code.
    """

    created_total: int = 0
    closed_total: int = 0
    create_success: int = 0
    create_fail: int = 0
    active: int = 0
    errors: Counter[str] = field(default_factory=Counter)

    def opened(self) -> None:
        """Count an accepted TCP connection."""
        self.created_total += 1
        self.active += 1

    def closed(self) -> None:
        """Count a closed connection."""
        self.closed_total += 1
        self.active -= 1
