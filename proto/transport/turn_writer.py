"""Writer that collects the frames of an event-loop iteration and sends them together."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Buffer = bytes | memoryview


MOST_BYTES = 65_536
"""Bytes that are sent before the turn ends."""


class TurnWriter:
    """Writer that queues all frames of an event-loop iteration as a single outbound entry.

    Receipts and messages are small and numerous: a separate entry and system call for each would
    dominate their cost.

    Args:
        enqueue: Queues buffers and their size as an entry.
    """

    __slots__ = ("_enqueue", "_frames", "_is_due", "_size_bytes")

    def __init__(self, enqueue: Callable[[Sequence[Buffer], int], None]) -> None:
        self._enqueue = enqueue
        self._frames: list[Buffer] = []
        self._size_bytes = 0
        self._is_due = False

    def add(self, *frame: Buffer) -> None:
        """Add a frame, in one or more buffers, to be sent when the event-loop iteration ends."""
        self._frames += frame
        self._size_bytes += sum(map(len, frame))
        if self._size_bytes >= MOST_BYTES:
            # So that the sender notices immediately that the connection is full.
            self.flush()
        elif not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._turn_ended)

    def _turn_ended(self) -> None:
        self._is_due = False
        self.flush()

    def flush(self) -> None:
        """Send the collected frames now instead of at the end of the event-loop iteration."""
        if self._frames:
            frames, size_bytes = self._frames, self._size_bytes
            self._frames, self._size_bytes = [], 0
            self._enqueue(frames, size_bytes)
