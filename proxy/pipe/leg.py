"""The two sides of a pipe, and the closing of a pipe when the proxy shuts down.

A pipe copies bytes and does not know about pending requests. A draining proxy therefore stops
forwarding the client's bytes, and closes the pipe after a silence of the broker.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from limiter.clock import clock_sleep, deadline
from limiter.flow.causes import PauseCause
from proto.transport.connection import Connection

if TYPE_CHECKING:
    from collections.abc import Callable

    from limiter.clock import Clock
    from proto.frames import Frame


class PipeLeg(Connection):
    """One side of a pipe; while it cannot be written, the other side is not read."""

    other: Connection | None = None
    takes_frame: Callable[[Frame], object] | None = None
    """Receives the frames of an open pipe while a fault is active: see proxy.pipe.faulty_pipe."""

    def writability_changed(self, *, writable: bool) -> None:
        """Pause or resume reading from the other side of the pipe."""
        super().writability_changed(writable=writable)
        if self.other is not None and writable:
            self.other.gate.open_for(PauseCause.PEER_LEG_FULL)
        elif self.other is not None:
            self.other.gate.close_for(PauseCause.PEER_LEG_FULL)

    def end_other(self) -> None:
        """Close the other side of the pipe, after sending the bytes still queued for it.

        The opposite side's incoming bytes are read and discarded: a peer that only writes would
        otherwise never read the remaining bytes.
        """
        other, self.other = self.other, None
        if other is not None:
            other.take_no_more()
            other.close()

    def pipe_to(self, other: Connection) -> None:
        """Pass every received byte to ``other`` from now on."""
        self.sender.in_a_pipe = True
        self.receive_raw(lambda data: other.enqueue([data], len(data)))


QUIET_SECONDS = 0.1
"""Silence after which a broker is taken to have answered all pending requests."""
MOST_LOOKS = 20
"""Silence checks before a constantly sending broker is cut off."""


async def end_pipe(client: PipeLeg, clock: Clock, leave_seconds: float) -> None:
    """Wait until a client's pipe may be closed at shutdown; return immediately without a pipe."""
    broker = client.other
    if broker is None:
        return
    if leave_seconds > 0:
        with suppress(TimeoutError):
            async with deadline(clock, leave_seconds):
                await client.wait_closed()
    client.take_no_more()
    for _ in range(MOST_LOOKS):
        before = broker.chunks_received
        if client.closed or broker.closed:
            return
        await clock_sleep(clock, QUIET_SECONDS)
        if broker.chunks_received == before:
            return
