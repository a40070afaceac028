"""Limit on the memory that the incomplete frames of all connections occupy together.

A connection keeps at most the bytes of a frame, but thousands may each send all of a frame but its
last byte. When their sum exceeds the bound, the oldest incomplete frame's connection is closed: it
is rarely a healthy publisher's, whose frames complete soon.
"""

from __future__ import annotations

from typing import Protocol

from server.limits.connections import Limit, Refusals

COUNTED_BYTES = 65_536
"""The least counted bytes of a frame; fewer are bounded by the number of connections."""
FIRST_COUNTED_BYTES = 1_024
"""The same for a connection before CONNECT, whose first frame has at most 64 KiB."""
FIRST_BYTES = 16 * 1024 * 1024
"""Maximum bytes of unfinished frames, summed over all connections before their CONNECT."""


class FrameKeeper(Protocol):
    """An interface of a connection whose incomplete frame counts toward the limit."""

    def unfinished_too_long(self, size_bytes: int, most_bytes: int) -> None:
        """Close the connection and free its frame, as incomplete frames exceed the limit."""


class UnfinishedFrames:
    """Limits the bytes of all incomplete frames, by closing the connection with the oldest one.

    Args:
        max_bytes: Limit on the sum of sizes, which a single frame may exceed; 0 or less for none.
        refusals: Counts closed connections.
    """

    def __init__(self, max_bytes: int = 0, refusals: Refusals | None = None) -> None:
        self.max_bytes = max_bytes
        self._refusals = refusals or Refusals()
        self.kept_bytes = 0
        self._frames: dict[FrameKeeper, tuple[int, int]] = {}

    def keeps(self, keeper: FrameKeeper, number: int, size_bytes: int) -> None:
        """Record the size of a connection's incomplete frame.

        Args:
            keeper: The connection.
            number: The frame's number in the connection; a new frame counts as the youngest.
            size_bytes: Size of the incomplete frame; 0 if there is none to count.
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
        """Close the connection with the oldest incomplete frame, even if it is not being read."""
        oldest = next(iter(self._frames))
        _, size_bytes = self._frames.pop(oldest)
        self.kept_bytes -= size_bytes
        self._refusals.add(Limit.UNFINISHED_FRAMES)
        oldest.unfinished_too_long(size_bytes, self.max_bytes)
