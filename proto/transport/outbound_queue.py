"""Queue of a connection's outbound entries, which release their resources once sent.

An entry is done when the transport's own buffer is empty after it, with TLS as well, because the
ciphertext is made here. Only then does the entry release its resources. The mutable state is the
queue and the batch that was handed over.
"""

from __future__ import annotations

import os
import socket
import struct
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence

    from limiter.flow.outbound_buffer import OutboundBuffer
    from proto.transport.writers import Buffer, Writer

HANDOVER_BYTES = 65_536
"""Bytes of small entries sent together; a large entry is sent alone."""
TURN_BYTES = 4 << 20
"""Bytes after which a turn ends, however fast the kernel accepts more: some 5 ms."""


class OutboundEntry:
    """Bytes sent together, and a callback for when the kernel has accepted all of them."""

    __slots__ = ("buffers", "on_left", "paid_bytes", "size_bytes")

    def __init__(
        self,
        buffers: Sequence[Buffer],
        size_bytes: int,
        on_left: Callable[[], object] | None,
        paid_bytes: int = 0,
    ) -> None:
        self.buffers = buffers
        self.size_bytes = size_bytes
        self.on_left = on_left
        # The part covered by a permit of the memory limiter.
        self.paid_bytes = paid_bytes

    def leave(self) -> None:
        """Call ``on_left`` to release the entry's resources, at most once."""
        on_left, self.on_left = self.on_left, None
        if on_left is not None:
            on_left()


class OutboundQueue:
    """Queue of the outbound entries of a connection.

    Args:
        buffer: Weighs the pending entries.
        writer: Turns a batch into writes.
        writability_changed: Called when the weight crosses a mark.

    Attributes:
        written_bytes: All bytes written to the transport, with TLS as ciphertext.
    """

    def __init__(
        self,
        buffer: OutboundBuffer,
        writer: Writer,
        writability_changed: Callable[[bool], object],
    ) -> None:
        self._buffer = buffer
        self._writer = writer
        self._writability_changed = writability_changed
        self._entries: deque[OutboundEntry] = deque()
        self._handed_over: list[OutboundEntry] = []
        self._goes_on = False
        self.written_bytes = 0

    def __len__(self) -> int:
        return len(self._entries) + len(self._handed_over)

    def was_written(self, entry: OutboundEntry) -> None:
        """Add an entry that was written to the transport, but not all accepted by the kernel."""
        self._handed_over = [entry]
        self._buffer.weigh(entry.size_bytes, entry.paid_bytes)

    def add(self, entry: OutboundEntry) -> None:
        """Queue an entry; call ``judge`` to compare the pending bytes with the water marks."""
        self._entries.append(entry)
        self._buffer.weigh(entry.size_bytes, entry.paid_bytes)

    def judge(self) -> None:
        """Call ``writability_changed`` if the pending bytes have crossed the high water mark."""
        if self._buffer.became_unwritable():
            self._writability_changed(False)

    def hand_over(self, transport: asyncio.Transport) -> bool:
        """Write as many entries as possible, while the transport's buffer is empty.

        Returns:
            True if the kernel accepted all bytes of this event-loop iteration, and ``drained`` must
                continue in a later one.
        """
        return not self._goes_on and self._hand_over(transport, TURN_BYTES)

    def drained(self, transport: asyncio.Transport) -> bool:
        """Write the next entries, now that the transport's buffer is empty.

        Returns the same as ``hand_over``.
        """
        left = TURN_BYTES
        if self._handed_over:
            left = self._hand_over_rest(transport, left)
        return self._hand_over(transport, left)

    def _hand_over(self, transport: asyncio.Transport, left: int) -> bool:
        while left > 0 and self._entries and not self._handed_over and not transport.is_closing():
            self._handed_over = self._next_batch()
            written = self._writer.begin(transport, self._taken_buffers())
            self.written_bytes += written
            left = self._hand_over_rest(transport, left - written)
        pending = self._writer.pending or (self._entries and not self._handed_over)
        self._goes_on = left <= 0 and bool(pending) and transport.get_write_buffer_size() == 0
        return self._goes_on

    def _taken_buffers(self) -> list[Buffer]:
        """Remove the buffers from the entries of the batch and return them.

        Frees a large entry while it is written: freeing 100 MB in one step would take 20 ms.
        """
        buffers = [buffer for entry in self._handed_over for buffer in entry.buffers]
        for entry in self._handed_over:
            entry.buffers = ()
        return buffers

    def discard(self) -> None:
        """Drop the entries of a closed connection; each releases its resources."""
        entries = [*self._handed_over, *self._entries]
        self._handed_over = []
        self._entries.clear()
        for entry in entries:
            self._buffer.left(entry.size_bytes, entry.paid_bytes)
            entry.leave()

    def _hand_over_rest(self, transport: asyncio.Transport, left: int) -> int:
        """Continue to write the batch while the kernel accepts all bytes immediately.

        Args:
            transport: Its buffer must be empty; otherwise nothing is written.
            left: Number of bytes that may still be written in this event-loop iteration.

        Returns:
            The number of bytes that may still be written in this iteration.
        """
        while transport.get_write_buffer_size() == 0:
            if left <= 0 and self._writer.pending and not transport.is_closing():
                break
            written = 0 if transport.is_closing() else self._writer.more(transport)
            self.written_bytes += written
            left -= written
            if not written:
                self._batch_left()
                break
        return left

    def _batch_left(self) -> None:
        batch, self._handed_over = self._handed_over, []
        for entry in batch:
            if self._buffer.left(entry.size_bytes, entry.paid_bytes):
                self._writability_changed(True)
            entry.leave()

    def _next_batch(self) -> list[OutboundEntry]:
        batch = [self._entries.popleft()]
        size = batch[0].size_bytes
        while self._entries and size + self._entries[0].size_bytes <= HANDOVER_BYTES:
            entry = self._entries.popleft()
            batch.append(entry)
            size += entry.size_bytes
        return batch


try:
    import fcntl
    import termios

    _REQUEST: int | None = getattr(termios, "TIOCOUTQ", None)
except ImportError:  # not available on this system
    _REQUEST = None

_INT = struct.Struct("i")
_LINGER_NOT = struct.pack("ii", 1, 0)


def unacknowledged_bytes(descriptor: int) -> int:
    """Return the length of a TCP socket's send queue (SIOCOUTQ): unsent and unacknowledged bytes.

    0 if unavailable, or if the socket is closed: then bytes handed to the kernel count as
    acknowledged.
    """
    if _REQUEST is None or descriptor < 0:
        return 0
    try:
        answer = fcntl.ioctl(descriptor, _REQUEST, bytes(_INT.size))
    except OSError:
        return 0
    (size_bytes,) = _INT.unpack(answer)
    return int(size_bytes)


def forget_unsent(descriptor: int) -> None:
    """Make the next close of a socket reset the connection and free its send queue (SO_LINGER)."""
    # A separate socket object, since uvloop's has no options.
    with suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as same:
        same.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT)
