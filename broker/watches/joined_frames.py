"""Small frames of one change that leave past the queues, one write for each connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from server.served_connection import ServedConnection


class JoinedFrames:
    """Frames by connection, between two pauses of the loop.

    Many watch on one connection, as a client with many consumers does: what a change tells them is
    one call of the kernel. Bound: what is told between two pauses, which is written at the next.
    """

    __slots__ = ("_by_cnx",)

    def __init__(self) -> None:
        self._by_cnx: dict[ServedConnection, list[bytes]] = {}

    def add(self, cnx: ServedConnection, frame: bytes) -> bool:
        """Take a frame; false where something is queued already, behind which it belongs."""
        frames = self._by_cnx.get(cnx)
        if frames is not None:
            frames.append(frame)
            return True
        if not cnx.may_write_through:
            return False
        self._by_cnx[cnx] = [frame]
        return True

    def leave(self, part: Callable[[], Callable[[], object]], *, pays: bool) -> None:
        """Write what was taken.

        Args:
            part: Takes part in what pays for the frames, for one that the kernel leaves waiting.
            pays: Whether a permit pays for them.
        """
        by_cnx, self._by_cnx = self._by_cnx, {}
        for cnx, frames in by_cnx.items():
            joined = frames[0] if len(frames) == 1 else b"".join(frames)
            paid_bytes = len(joined) if pays else 0
            if not cnx.write_through(joined, part, paid_bytes):
                # Something was queued meanwhile, it is too much at once, or the peer is gone.
                cnx.enqueue([joined], len(joined), part(), paid_bytes)
