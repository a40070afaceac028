"""The rate at which a budget grants permits to requests that wait."""

from __future__ import annotations

import math

REMEMBERED_SECONDS = 5.0
"""A grant of so long ago counts a third (1/e) of one of now."""


class DrainRate:
    """Measures permits a second granted to requests that waited, recent grants most.

    Time in which no request waits does not count.
    """

    __slots__ = ("_permits", "_seconds", "_since")

    def __init__(self) -> None:
        self._permits = self._seconds = 0.0
        self._since: float | None = None

    def begins(self, now: float) -> None:
        """Count time from now on: a request waits."""
        if self._since is None:
            self._since = now

    def granted(self, permits: int, now: float) -> None:
        """Count permits granted to a request that waited."""
        self._permits, self._seconds = self._until(now)
        self._permits += permits
        self._since = now

    def ends(self, now: float) -> None:
        """Stop counting time: no request waits any more."""
        self._permits, self._seconds = self._until(now)
        self._since = None

    def now(self, now: float) -> float | None:
        """Return permits a second; None before the first grant, and in its moment."""
        permits, seconds = self._until(now)
        return permits / seconds if permits and seconds else None

    def _until(self, now: float) -> tuple[float, float]:
        """Return permits and seconds by their weight at ``now``, time without a grant included."""
        passed = 0.0 if self._since is None else now - self._since
        kept = math.exp(-passed / REMEMBERED_SECONDS)
        return self._permits * kept, self._seconds * kept + passed
