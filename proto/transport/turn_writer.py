"""Gathers what a connection is sent in one turn of the event loop, and writes it at once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Buffer = bytes | memoryview


MOST_BYTES = 65_536
"""As much is sent before the turn ends."""


class TurnWriter:
    """Gathers frames until the turn ends; then they are one entry of the outbound queue.

    A receipt or a message is small and there are many: an entry and a system call each would cost
    more than all else about them.

    Args:
        enqueue: Queues buffers and their size as one entry.
    """

    __slots__ = ("_enqueue", "_frames", "_is_due", "_size_bytes")

    def __init__(self, enqueue: Callable[[Sequence[Buffer], int], None]) -> None:
        self._enqueue = enqueue
        self._frames: list[Buffer] = []
        self._size_bytes = 0
        self._is_due = False

    def add(self, *frame: Buffer) -> None:
        """Send a frame, given in one piece or several, when the turn ends."""
        self._frames += frame
        self._size_bytes += sum(map(len, frame))
        if self._size_bytes >= MOST_BYTES:
            # So that who sends more sees at once that the connection takes no more.
            self.flush()
        elif not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._turn_ended)

    def _turn_ended(self) -> None:
        self._is_due = False
        self.flush()

    def flush(self) -> None:
        """Send now what was gathered: something else is sent behind it."""
        if self._frames:
            frames, size_bytes = self._frames, self._size_bytes
            self._frames, self._size_bytes = [], 0
            self._enqueue(frames, size_bytes)
