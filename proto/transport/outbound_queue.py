"""A connection's outgoing entries: queued, handed to the kernel whole, then gone.

An entry is gone when the transport's own buffer is empty after it: with TLS, too, because the
ciphertext is made here. Only then does the entry give back what it holds. The mutable state is
the queue and the batch that was handed over.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence

    from limiter.flow.outbound_buffer import OutboundBuffer
    from proto.transport.writers import Buffer, Writer

HANDOVER_BYTES = 65_536
"""Bytes of small entries that leave together; a large one goes alone."""
TURN_BYTES = 4 << 20
"""Bytes after which others have their turn, however fast the kernel takes more: some 5 ms."""


class OutboundEntry:
    """Bytes that leave together, and a callback for when the kernel has the last of them."""

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
        # What of it a permit of the memory limiter pays for.
        self.paid_bytes = paid_bytes

    def leave(self) -> None:
        """Give back what the entry holds, once."""
        on_left, self.on_left = self.on_left, None
        if on_left is not None:
            on_left()


class OutboundQueue:
    """The entries of one connection.

    Args:
        buffer: Weighs what is pending.
        writer: Turns a batch into writes.
        writability_changed: Told when the weight crosses a mark.

    Attributes:
        written_bytes: All that was given to the transport, with TLS as ciphertext.
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
        """Take over an entry whose bytes the transport has, not all of them the kernel."""
        self._handed_over = [entry]
        self._buffer.weigh(entry.size_bytes, entry.paid_bytes)

    def add(self, entry: OutboundEntry) -> None:
        """Queue an entry; ``judge`` then compares the weight with the marks."""
        self._entries.append(entry)
        self._buffer.weigh(entry.size_bytes, entry.paid_bytes)

    def judge(self) -> None:
        """Tell when the weight has crossed the high mark."""
        if self._buffer.became_unwritable():
            self._writability_changed(False)

    def hand_over(self, transport: asyncio.Transport) -> bool:
        """Give the transport as many entries as go at once, while it has none of ours.

        Returns:
            Whether the kernel took all of a turn's bytes, and ``drained`` is to go on in another.
        """
        return not self._goes_on and self._hand_over(transport, TURN_BYTES)

    def drained(self, transport: asyncio.Transport) -> bool:
        """Go on: the transport's own buffer is empty. Returns what ``hand_over`` returns."""
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
        """Return the buffers of the batch, which only the writer keeps from now on.

        So a large entry is freed while it is written: 100 MB at once would take 20 ms.
        """
        buffers = [buffer for entry in self._handed_over for buffer in entry.buffers]
        for entry in self._handed_over:
            entry.buffers = ()
        return buffers

    def discard(self) -> None:
        """Let every entry give back what it holds: the connection is gone."""
        entries = [*self._handed_over, *self._entries]
        self._handed_over = []
        self._entries.clear()
        for entry in entries:
            self._buffer.left(entry.size_bytes, entry.paid_bytes)
            entry.leave()

    def _hand_over_rest(self, transport: asyncio.Transport, left: int) -> int:
        """Go on with the batch for as long as the kernel takes everything at once.

        Args:
            transport: It has nothing of ours, or it is not asked for more.
            left: Bytes that may be written in this turn.

        Returns:
            What is left of them.
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
        """End a batch, of which the kernel has every byte."""
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
