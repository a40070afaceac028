"""Faults of the frames sent to a client: entries are inspected before they are queued.

An entry holds whole frames. A delayed frame's memory permits are released with its original entry,
before the frame leaves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from proto.frames import LENGTH_FIELD_BYTES, Frame, FrameDecoder
from server.faults.acting import Faulty
from server.faults.connection import ConnectionFaults
from server.faults.fault import Direction

if TYPE_CHECKING:
    from collections.abc import Callable

    from limiter.clock import Clock
    from proto.transport.outbound_queue import OutboundEntry
    from proto.transport.sender import Sender
    from proto.transport.writers import Buffer
    from server.faults.registry import FaultRegistry

_NO_LIMIT = 1 << 31


class Served(Faulty, Protocol):
    """A client's connection, as far as its sent frames have faults."""

    sender: Sender

    def when_lost(self, *told: Callable[[object], object]) -> None:
        """Call back when the connection is lost."""


class OutgoingFaults:
    """The faults of the frames sent to a client, except through pipes."""

    can_stop = False

    def __init__(self, registry: FaultRegistry, clock: Clock, cnx: Served) -> None:
        self._sender = cnx.sender
        self._past = False
        self._faults = ConnectionFaults(registry, clock, cnx, self, Direction.SENT)
        cnx.sender.screen = self._screen
        cnx.sender.passes_queue = False  # Frames past the queue are not screened.
        cnx.when_lost(lambda _: self._faults.lost())

    def stop(self) -> None:
        """Do nothing: later frames are sent."""

    def go_on(self) -> None:
        """Do nothing, as nothing was stopped."""

    def again(self, frame: Frame) -> None:
        """Send a held frame, exempt from further faults."""
        self._faults.holds.was_delayed(frame)
        buffers = _buffers(frame)
        self._past = True
        try:
            self._sender.enqueue(buffers, sum(map(len, buffers)))
        finally:
            self._past = False

    def _screen(self, entry: OutboundEntry) -> bool:
        """Change an entry by faults; return False if nothing of it is sent now."""
        if self._past or not self._faults.wanted:
            return True
        decoder = FrameDecoder(_NO_LIMIT)
        decoder.feed(b"".join(entry.buffers))
        buffers: list[Buffer] = []
        while (frame := decoder.next_frame()) is not None:
            left = self._faults.frame(frame)
            if left is not None:
                buffers += _buffers(left)
        entry.buffers, entry.size_bytes = buffers, sum(map(len, buffers))
        entry.paid_bytes = min(entry.paid_bytes, entry.size_bytes)
        return bool(buffers)


def _buffers(frame: Frame) -> list[Buffer]:
    return [frame.total_size.to_bytes(LENGTH_FIELD_BYTES, "big"), *frame.parts]
