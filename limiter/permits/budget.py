"""The amounts of a semaphore: its limit, the sum of its permits, and a passing overdraft."""

from __future__ import annotations

from limiter.permits.permit import UNBOUNDED_PERMITS


class Budget:
    """A limit and what is taken of it. Units: permits.

    Attributes:
        max_permits: The limit; 0 or less is unbounded, and then nothing is counted.
        acquired: The sum of all live permits.
        high_water: The most that was ever acquired at once.
        overdraft: True from a grant beyond the limit until the sum is within it again.
        overdrafts_total: The number of such grants.
        closed: True when nothing is granted any more.
    """

    def __init__(self, max_permits: int) -> None:
        self.max_permits = max_permits
        self.acquired = self.high_water = self.overdrafts_total = 0
        self.overdraft = self.closed = False

    @property
    def unbounded(self) -> bool:
        """True if nothing is limited and nothing counted."""
        return self.max_permits <= 0

    @property
    def available_permits(self) -> int:
        """Permits that could be granted now; the largest Java long when unbounded."""
        return UNBOUNDED_PERMITS if self.max_permits <= 0 else self.max_permits - self.acquired

    @property
    def overdraft_permits(self) -> int:
        """Permits beyond the limit that a growth was granted and that are still held."""
        return max(0, self.acquired - self.max_permits) if self.overdraft else 0

    def add(self, size: int) -> None:
        """Count a permit."""
        self.acquired += size
        self.high_water = max(self.high_water, self.acquired)

    def end_overdraft(self) -> None:
        """Forget an overdraft once what is acquired is within the limit."""
        if self.unbounded or self.acquired <= self.max_permits:
            self.overdraft = False
