"""Publish times of a topic's entries, used for seeking and expiry."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from limiter.clock import Clock

MOST_AHEAD_MS = 3_600_000
"""The largest accepted lead of a producer's clock over the broker's."""


class PublishTimes:
    """Keeps the publish times of a topic's entries rising, despite wrong producer clocks.

    Entries are found by binary search: an entry dated 1970 would make all earlier entries expire,
    and an entry dated 3000 would keep all later entries. Consumers still receive the original
    times.

    Attributes:
        last: The time of the last entry, in ms since 1970; 0 without entries.

    Args:
        clock: The time of day.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._believed_until = 0
        self.last = 0

    def next(self, said: int) -> int:
        """Return the time of the next entry, corrected if the producer's time is implausible."""
        if not self.last <= said <= self._believed_until:
            now = self._clock.wall_ms()
            self._believed_until = now + MOST_AHEAD_MS
            if said > self._believed_until:
                said = now
            if self.last > self._believed_until:
                self.last = 0  # The broker's clock was ahead, and was set back.
        return max(self.last, said)
