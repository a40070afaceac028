"""The rate at which a budget grants permits to waiting requests."""

from __future__ import annotations

import math

REMEMBERED_SECONDS = 5.0
"""The age at which a grant weighs a third (1/e) of a new grant."""


class DrainRate:
    """Permits granted per second to waiting requests, recent grants weighing most.

    Time without a waiting request does not count.
    """

    __slots__ = ("_permits", "_seconds", "_since")

    def __init__(self) -> None:
        self._permits = self._seconds = 0.0
        self._since: float | None = None

    def begins(self, now: float) -> None:
        """Start counting time: a request waits."""
        if self._since is None:
            self._since = now

    def granted(self, permits: int, now: float) -> None:
        """Count permits granted to a waiting request."""
        self._permits, self._seconds = self._until(now)
        self._permits += permits
        self._since = now

    def ends(self, now: float) -> None:
        """Stop counting time: the last waiting request left."""
        self._permits, self._seconds = self._until(now)
        self._since = None

    def now(self, now: float) -> float | None:
        """Return permits per second; None until time has passed since the first grant."""
        permits, seconds = self._until(now)
        return permits / seconds if permits and seconds else None

    def _until(self, now: float) -> tuple[float, float]:
        """Return permits and seconds weighted at ``now``, up to ``now``."""
        passed = 0.0 if self._since is None else now - self._since
        kept = math.exp(-passed / REMEMBERED_SECONDS)
        return self._permits * kept, self._seconds * kept + passed
