"""One direction of a simulated connection, from the sender's memory to the reader.

Bytes are counted, never copied: sent bytes go to the sink by reference, once, and the pipe counts
their progress. The counts only grow, in this order: sent, taken (by the sender's kernel), moved (to
the receiver's), visible (arrived), read.

The kernel's buffers are those of Linux, as measured on the loopback. Linux doubles SO_SNDBUF and
SO_RCVBUF. A receiver frees memory a packet at a time, and joins arriving bytes to the last packet
while the buffer is not empty: so after a full window the next bytes come when all is read, in one
lump of almost three quarters of the buffer. A new connection fills the buffer once, and the first
packet (of a quarter) is freed alone.

A sender takes whole segments (of half a window) until the buffer is full, so the last segment goes
beyond; the writer is woken when a third is free, and learns of received bytes from a delayed
acknowledgement. By default, a send buffer grows to 4 MiB immediately, and a receive buffer stays at
128 KiB for slow readers.

Measured on Linux 6.18, with SO_SNDBUF and SO_RCVBUF of 64 KiB and a small frame first: the byte
counts of all lumps of a first answer. Other sizes, and a connection's later answers: bytes in the
kernel within 15 %.
"""

from __future__ import annotations

from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable, Sequence

    from loadgen.virtual.loop import VirtualLoop
    from loadgen.virtual.processor import Processor

    Buffer: TypeAlias = bytes | memoryview

SEND_DEFAULT_BYTES = 4_060_000
RECEIVE_DEFAULT_BYTES = 131_072
WRITABLE_SHARE = 2 / 3
FIRST_PACKET_SHARE = 0.24985
FIRST_SHARE = 0.97397
SECOND_SHARE = 0.26216
WINDOW_SHARE = 0.72347
LARGEST_SEGMENT_BYTES = 65_483
SEGMENT_OVERHEAD_BYTES = 832
ACKNOWLEDGE_SECONDS = 0.041
LATENCY_SECONDS = 20e-6
"""Seconds that bytes need from one simulated kernel to the other."""


class KernelBuffers:
    """The sizes of both kernels' buffers in one direction of a connection.

    Args:
        so_sndbuf: 0 leaves the size to the kernel.
        so_rcvbuf: Likewise.

    Attributes:
        receive_bytes: Capacity of the receiver's kernel, at first.
        first_packet_bytes: Bytes to read before the first further lump arrives.
        second_bytes: Size of that lump.
        window_bytes: Size of each later lump, which arrives when all bytes are read.
        send_bytes: Capacity of the sender's kernel.
        first_send_bytes: The same until a window was full and opened.
        writable_bytes: Bytes left in the sender's kernel at which a writer is woken.
    """

    def __init__(self, so_sndbuf: int, so_rcvbuf: int) -> None:
        send = 2 * so_sndbuf if so_sndbuf else SEND_DEFAULT_BYTES
        receive = 2 * so_rcvbuf if so_rcvbuf else RECEIVE_DEFAULT_BYTES
        self.receive_bytes = int(receive * FIRST_SHARE)
        self.first_packet_bytes = int(receive * FIRST_PACKET_SHARE)
        self.second_bytes = int(receive * SECOND_SHARE)
        self.window_bytes = int(receive * WINDOW_SHARE)
        self.send_bytes = _whole_segments(send, self.window_bytes // 2)
        self.first_send_bytes = _whole_segments(send, self.first_packet_bytes)
        self.writable_bytes = int(send * WRITABLE_SHARE)


def _whole_segments(send_bytes: int, segment_bytes: int) -> int:
    """Return how many bytes a send buffer takes in whole segments, the last of which exceeds it."""
    segment = max(1, min(segment_bytes, LARGEST_SEGMENT_BYTES))
    return ceil(send_bytes / (segment + SEGMENT_OVERHEAD_BYTES)) * segment


def take(pieces: deque[Buffer], size: int) -> list[Buffer]:
    """Remove the first ``size`` bytes from the sent pieces, without copying."""
    taken: list[Buffer] = []
    while size:
        piece = pieces.popleft()
        if len(piece) > size:
            pieces.appendleft(memoryview(piece)[size:])
            piece = memoryview(piece)[:size]
        taken.append(piece)
        size -= len(piece)
    return taken


class Sink(Protocol):
    """The receiving end of a pipe, which is notified of sent and arrived bytes."""

    def sent(self, buffers: Sequence[Buffer]) -> None:
        """Store bytes that were sent, before any of them may be read."""

    def arriving(self) -> None:
        """Read the bytes that have arrived so far, just before more become visible."""

    def arrived(self) -> None:
        """Handle that more bytes have become visible."""

    def ended(self, *, reset: bool) -> None:
        """Handle that the sender has closed; after a reset, unread bytes are lost."""


class Pipe:
    """One direction of a connection, which counts the bytes on their way.

    Args:
        processor: The sending process's; None for a client, whose work takes no time.
        writable: Called when a sender with bytes left may continue.

    Attributes:
        shut: The receiver's window is closed.
        opens_at: The count of read bytes that opens the window.
    """

    __slots__ = (
        "_announced", "_delayed", "_edge", "_ended", "_is_new", "_loop", "_opening",
        "_processor", "_unheard", "_writable", "buffers", "moved", "opens_at", "read", "sent",
        "shut", "sink", "taken", "visible",
    )  # fmt: skip

    def __init__(
        self,
        loop: VirtualLoop,
        buffers: KernelBuffers,
        processor: Processor | None,
        writable: Callable[[], object],
    ) -> None:
        self.buffers = buffers
        self.sink: Sink
        self.sent = self.taken = self.moved = self.visible = self.read = 0
        self.shut = False
        self._announced = 0
        self._loop = loop
        self._processor = processor
        self._writable = writable
        self._opening = self._ended = self._unheard = self._delayed = False
        self._is_new = True  # no window was full yet
        self._edge = buffers.receive_bytes  # the window's end
        self.opens_at = 0

    @property
    def unsent(self) -> int:
        """The number of bytes that the sender's kernel has not accepted yet."""
        return self.sent - self.taken

    @property
    def unacknowledged(self) -> int:
        """The number of bytes in the sender's kernel."""
        return self.taken - self.moved

    # -- the sender ---------------------------------------------------------------------------

    def send(self, buffers: Sequence[Buffer], size: int) -> None:
        """Send bytes; those that do not fit into the kernel wait for :meth:`go_on`."""
        self.sink.sent(buffers)
        self.sent += size
        self.go_on()

    def go_on(self) -> None:
        """Pass as many waiting bytes to the kernel as fit."""
        before, buffers = self.taken, self.buffers
        space = buffers.first_send_bytes if self._is_new else buffers.send_bytes
        while (taking := min(self.sent - self.taken, space - self.taken + self.moved)) > 0:
            self.taken += taking
            self._move()
        if self._processor is not None and self.taken > before:
            self._processor.charge((self.taken - before) * self._processor.times.write_byte)
        self._announce()

    def forget_unsent(self) -> None:
        """Drop the bytes that the kernel has not accepted."""
        self.sent = self.taken

    def end(self, *, reset: bool = False) -> None:
        """Close this direction, after the accepted bytes or, by a reset, immediately."""
        if not self._ended:
            self._ended = True
            ended = partial(self.sink.ended, reset=reset)
            self._loop.after(self._left_at() + LATENCY_SECONDS, ended)

    # -- from kernel to kernel ----------------------------------------------------------------

    def _move(self) -> None:
        """Move as many bytes to the receiver's kernel as its window allows."""
        if self.shut:
            return
        room = self._edge - self.moved
        waiting = self.taken - self.moved
        self.moved += min(waiting, room)
        if waiting >= room:
            self.shut = True
            first = self.buffers.receive_bytes - self.buffers.first_packet_bytes
            self.opens_at = self._edge - first if self._is_new else self.moved
            self._open_if_read()

    def _announce(self) -> None:
        """Make moved bytes visible to the receiver after the network's latency."""
        if self.moved > self._announced:
            self._announced = self.moved
            self._loop.after(self._left_at() + LATENCY_SECONDS, self._arrive, self.moved)

    def _left_at(self) -> float:
        return self._loop.time() if self._processor is None else self._processor.done_at

    def _arrive(self, visible: int) -> None:
        self.sink.arriving()
        self.visible = visible
        self.sink.arrived()
        if self._unheard and not self._delayed:
            if self.read == self.moved:  # an emptied buffer is acknowledged immediately
                self._heard()
            else:
                self._delayed = True
                self._loop.after(self._loop._now + ACKNOWLEDGE_SECONDS, self._heard)

    # -- the receiver -------------------------------------------------------------------------

    def was_read(self, offset: int) -> None:
        """Record that all bytes up to an offset were read, which may open the window again."""
        self.read = offset
        if self.shut:
            self._open_if_read()
        if offset == self.moved:
            if not self.shut:
                new, window = self.buffers.receive_bytes, self.buffers.window_bytes
                self._edge = offset + (new if self._is_new else window)
            if self._delayed:
                self._loop.after(self._loop._now + LATENCY_SECONDS, self._heard)

    def _open_if_read(self) -> None:
        if not self._opening and self.read >= self.opens_at:
            self._opening = True
            self._loop.after(self._loop._now + LATENCY_SECONDS, self._open)

    def _open(self) -> None:
        self._opening = self.shut = False
        buffers = self.buffers
        self._edge = self.moved + (buffers.second_bytes if self._is_new else buffers.window_bytes)
        self._is_new = False
        self._move()
        self._announce()
        self._unheard = self._lets_write()

    def _lets_write(self) -> bool:
        return self.sent > self.taken and self.unacknowledged <= self.buffers.writable_bytes

    def _heard(self) -> None:
        """Resume the sender once the receiver has acknowledged bytes."""
        if self._unheard:
            self._unheard = self._delayed = False
            if self._lets_write():
                self._writable()
