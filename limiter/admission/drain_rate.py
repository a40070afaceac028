"""How fast a budget serves those that wait for it."""

from __future__ import annotations

import math

REMEMBERED_SECONDS = 5.0
"""What was granted so long ago counts a third (1/e) of what is granted now."""


class DrainRate:
    """Permits a second that were granted to those who waited, recent ones counting most.

    Only time in which somebody waits counts: while nobody does, nothing can be said.
    """

    __slots__ = ("_permits", "_seconds", "_since")

    def __init__(self) -> None:
        self._permits = self._seconds = 0.0
        self._since: float | None = None

    def begins(self, now: float) -> None:
        """Somebody waits from now on."""
        if self._since is None:
            self._since = now

    def granted(self, permits: int, now: float) -> None:
        """Count what was granted to one who waited."""
        self._permits, self._seconds = self._until(now)
        self._permits += permits
        self._since = now

    def ends(self) -> None:
        """Nobody waits any more."""
        self._since = None

    def now(self, now: float) -> float | None:
        """Return permits a second; None before the first grant, and in its moment."""
        permits, seconds = self._until(now)
        return permits / seconds if permits and seconds else None

    def _until(self, now: float) -> tuple[float, float]:
        """Return permits and seconds as they count at ``now``, the time without a grant too."""
        passed = 0.0 if self._since is None else now - self._since
        kept = math.exp(-passed / REMEMBERED_SECONDS)
        return self._permits * kept, self._seconds * kept + passed
