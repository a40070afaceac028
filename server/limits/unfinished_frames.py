"""Bounds what a process keeps of frames that have begun and do not end.

One connection keeps as much as a frame may have, but thousands may each send all of a frame but its
last byte. When what they keep together is too much, whose frame came first gives way: it is seldom
one that a healthy publisher is sending, since those end soon.
"""

from __future__ import annotations

from typing import Protocol

from server.limits.refusals import Limit, Refusals

COUNTED_BYTES = 65_536
"""Smaller parts are not counted: the number of connections bounds them."""
FIRST_COUNTED_BYTES = 1_024
"""The same of a connection before CONNECT, whose first frame has at most 64 KiB."""
FIRST_BYTES = 16 * 1024 * 1024
"""What all connections before CONNECT may keep together: nobody knows yet who they are."""


class FrameKeeper(Protocol):
    """A connection, as far as the bound depends on it."""

    def unfinished_too_long(self, size_bytes: int, most_bytes: int) -> None:
        """End it, and keep nothing: what all keep is more than may be."""


class UnfinishedFrames:
    """Counts what is kept of unfinished frames.

    Args:
        max_bytes: What all may keep together, or one frame alone; 0 or less: no bound.
        refusals: Counts who is closed.
    """

    def __init__(self, max_bytes: int = 0, refusals: Refusals | None = None) -> None:
        self.max_bytes = max_bytes
        self._refusals = refusals or Refusals()
        self.kept_bytes = 0
        self._frames: dict[FrameKeeper, tuple[int, int]] = {}

    def keeps(self, keeper: FrameKeeper, number: int, size_bytes: int) -> None:
        """Count what one keeps now.

        Args:
            keeper: Who keeps it.
            number: Another one for each of its frames: a new one is the youngest of all.
            size_bytes: Of its unfinished frame; 0: none that counts.
        """
        of_frame, before = self._frames.get(keeper, (number, 0))
        if of_frame != number or not size_bytes:
            self._frames.pop(keeper, None)
        if size_bytes:
            self._frames[keeper] = number, size_bytes
        self.kept_bytes += size_bytes - before
        while 0 < self.max_bytes < self.kept_bytes and len(self._frames) > 1:
            self._end_oldest()

    def _end_oldest(self) -> None:
        """End whose is oldest, paused or not: who reads no answers could spare itself otherwise."""
        oldest = next(iter(self._frames))
        _, size_bytes = self._frames.pop(oldest)
        self.kept_bytes -= size_bytes
        self._refusals.add(Limit.UNFINISHED_FRAMES)
        oldest.unfinished_too_long(size_bytes, self.max_bytes)
