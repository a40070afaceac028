"""The publish times of a topic's entries, by which they are found, and expire."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from limiter.clock import Clock

MOST_AHEAD_MS = 3_600_000
"""A producer's clock may be so far ahead of the broker's; what is more is not believed."""


class PublishTimes:
    """Has the publish times of a topic's entries rise, whatever its producers say.

    Entries are found by halving: one that says it is of 1970 would have all before it expire, and
    one of the year 3000 would have those behind it stay. What consumers get is as it was sent.

    Attributes:
        last: That of the last entry, in ms since 1970; 0 without one.

    Args:
        clock: Tells the time of day.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._believed_until = 0
        self.last = 0

    def next(self, said: int) -> int:
        """Return the time of the next entry, whose producer says another perhaps."""
        if not self.last <= said <= self._believed_until:
            now = self._clock.wall_ms()
            self._believed_until = now + MOST_AHEAD_MS
            if said > self._believed_until:
                said = now
            if self.last > self._believed_until:
                self.last = 0  # This clock was ahead, and is set back.
        return max(self.last, said)
