"""Direct memory for the updates of one change, acquired once for all who are told at once."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from broker.watches.updates.write_batch import JoinedFrames
from limiter.errors import PermitTooLargeError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from limiter.memory.response_memory import ResponseMemory
    from server.connection.served_connection import ServedConnection

logger = logging.getLogger(__name__)


class UpdatePayment:
    """Pays for the updates of one change: one copy for each set, however many watch it.

    Mostly the kernel has a frame before the next is sent, so a permit for each would be granted and
    given back a thousand times in a turn. It is held until everybody was told, and then until the
    last frame that the kernel did not take at once has left.

    Attributes:
        size_bytes: Of all copies; their makers add theirs.
        paid: Whether they are paid for.
        pays: Whether that is counted at all; see ResponseMemory.pays.
    """

    __slots__ = (
        "_asked",
        "_frames",
        "_memory",
        "_parts",
        "_told_all",
        "paid",
        "pays",
        "size_bytes",
    )

    def __init__(self) -> None:
        self._frames = JoinedFrames()
        self.size_bytes = 0
        self.paid = False
        self.pays = False
        self._asked = False
        self._memory: ResponseMemory | None = None
        self._parts = 0
        self._told_all = False

    def __repr__(self) -> str:
        return f"updates of {self.size_bytes} bytes"

    def pay(self, memory: ResponseMemory, namespace: str) -> bool:
        """Acquire the memory in its own name, once; false where that has to wait."""
        if not self._asked:
            self._asked, self._memory, self.pays = True, memory, memory.pays
            try:
                paid = memory.direct_at_once(self, self.size_bytes, self, namespace)
            except PermitTooLargeError:
                return False  # Each watcher asks for its own, which may be smaller.
            self.paid = paid is not None
        return self.paid

    def part(self) -> Callable[[], object]:
        """Take part for a frame that did not leave at once; return how that is given back."""
        self._parts += 1
        return self._part_left

    def send(self, cnx: ServedConnection, frame: bytes) -> bool:
        """Send a frame that is paid for, together with others of its connection.

        Returns:
            False where something is queued already, behind which it belongs.
        """
        return self._frames.add(cnx, frame, self._write)

    def leave(self) -> None:
        """Write what was joined so far, before others have their turn."""
        for cnx, frames in self._frames.taken():
            self._write(cnx, frames)

    def _write(self, cnx: ServedConnection, frames: Sequence[bytes]) -> None:
        """Write a connection's frames; what breaks here ends that connection only."""
        try:
            joined = frames[0] if len(frames) == 1 else b"".join(frames)
            paid_bytes = len(joined) if self.pays else 0
            if not cnx.write_through(joined, self.part, paid_bytes):
                # Something was queued meanwhile, or the peer is gone.
                cnx.enqueue([joined], len(joined), self.part(), paid_bytes)
        except Exception:
            logger.exception("closing %s after an error of ours", cnx.peer)
            cnx.close()

    def told_all(self) -> None:
        """Nobody else will take part."""
        try:
            self.leave()
        finally:
            self._told_all = True
            self._end_if_unused()

    def _part_left(self) -> None:
        self._parts -= 1
        if self._told_all:
            self._end_if_unused()

    def _end_if_unused(self) -> None:
        memory = self._memory
        if not self._parts and memory is not None:
            self._memory, self.paid = None, False
            memory.cancel_owner(self)  # It never asks again: no account is kept for it.
