"""Small frames of one change that leave past the queues, one write for each connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from server.connection.served_connection import ServedConnection

MAX_JOINED_BYTES = 65_536
"""Bytes of one connection that are joined; they are written before more come."""


class WriteBatch:
    """Frames by connection, between two pauses of the loop.

    Many watch on one connection, as a client with many consumers does: what a change tells them is
    one call of the kernel. Bound: MAX_JOINED_BYTES a connection, and what is told between two
    pauses, when all of it is written.
    """

    __slots__ = ("_by_cnx",)

    def __init__(self) -> None:
        self._by_cnx: dict[ServedConnection, _Joined] = {}

    def add(
        self,
        cnx: ServedConnection,
        frame: bytes,
        write: Callable[[ServedConnection, Sequence[bytes]], object],
    ) -> bool:
        """Take a frame.

        Args:
            cnx: Where it goes.
            frame: The bytes.
            write: Called for the connection's frames where they get too many.

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
        self._by_cnx[cnx] = _Joined(frame)
        return True

    def taken(self) -> Iterable[tuple[ServedConnection, Sequence[bytes]]]:
        """Take all frames out, to be written."""
        by_cnx, self._by_cnx = self._by_cnx, {}
        return ((cnx, joined.frames) for cnx, joined in by_cnx.items())


class _Joined:
    """The frames of one connection."""

    __slots__ = ("frames", "size_bytes")

    def __init__(self, frame: bytes) -> None:
        self.frames = [frame]
        self.size_bytes = len(frame)
