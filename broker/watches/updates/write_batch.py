"""Small frames of one change that are written past the queues, once for each connection.

A change that 400 watchers on 4 connections are sent takes 0.8 ms so, and 2.8 ms with a write each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from server.connection.served_connection import ServedConnection

MAX_JOINED_BYTES = 65_536
"""Most bytes of one connection that are joined; they are written before more are added."""


class WriteBatch:
    """Frames by connection, between two pauses of the loop.

    A client with many consumers has many watchers on one connection: their updates are one write.
    Bound: MAX_JOINED_BYTES for each connection, and the updates sent between two pauses.
    """

    __slots__ = ("_by_cnx",)

    def __init__(self) -> None:
        self._by_cnx: dict[ServedConnection, _Frames] = {}

    def add(
        self,
        cnx: ServedConnection,
        frame: bytes,
        write: Callable[[ServedConnection, Sequence[bytes]], object],
    ) -> bool:
        """Add a frame.

        Args:
            cnx: Its connection.
            frame: The bytes.
            write: Called with the connection's frames where they get too many.

        Returns:
            False where something is queued already, behind which it belongs.
        """
        joined = self._by_cnx.get(cnx)
        if joined is not None and joined.size_bytes + len(frame) > MAX_JOINED_BYTES:
            del self._by_cnx[cnx]
            write(cnx, joined.frames)
            joined = None
        if joined is not None:
            joined.frames.append(frame)
            joined.size_bytes += len(frame)
            return True
        if not cnx.sender.may_write_through:
            return False
        self._by_cnx[cnx] = _Frames(frame)
        return True

    def taken(self) -> Iterable[tuple[ServedConnection, Sequence[bytes]]]:
        """Remove and return all frames, to be written."""
        by_cnx, self._by_cnx = self._by_cnx, {}
        return ((cnx, joined.frames) for cnx, joined in by_cnx.items())


class _Frames:
    """The frames of one connection."""

    __slots__ = ("frames", "size_bytes")

    def __init__(self, frame: bytes) -> None:
        self.frames = [frame]
        self.size_bytes = len(frame)
