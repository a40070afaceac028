"""One side of a pipe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from limiter.flow.causes import PauseCause
from proto.transport.connection import Connection

if TYPE_CHECKING:
    from collections.abc import Callable

    from proto.frames import Frame


class PipeLeg(Connection):
    """One side of a pipe; an unwritable side pauses the opposite side's reading."""

    other: Connection | None = None
    takes_frame: Callable[[Frame], object] | None = None
    """Receives the frames of an open pipe while a fault is active: see proxy.pipe.faulty_pipe."""

    def writability_changed(self, *, writable: bool) -> None:
        """Pause or resume reading on the opposite side."""
        super().writability_changed(writable=writable)
        if self.other is not None and writable:
            self.other.gate.open_for(PauseCause.PEER_LEG_FULL)
        elif self.other is not None:
            self.other.gate.close_for(PauseCause.PEER_LEG_FULL)

    def end_other(self) -> None:
        """Close the opposite side after sending the remaining bytes.

        The opposite side's incoming bytes are read and discarded: a peer that only writes would
        otherwise never read the remaining bytes.
        """
        other, self.other = self.other, None
        if other is not None:
            other.take_no_more()
            other.close()

    def pipe_to(self, other: Connection) -> None:
        """Pass every byte on to ``other`` from now on."""
        self.sender.in_a_pipe = True
        self.receive_raw(lambda data: other.enqueue([data], len(data)))
