"""A transport without a socket: its peer reads bytes on command."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    Buffer = bytes | bytearray | memoryview


class MemoryTransport(asyncio.Transport):
    """A transport that keeps written bytes until ``peer_reads``, as asyncio's does.

    Args:
        protocol: Receives data, pauses and the end; ``connect`` passes it this transport.
        reads_at_once: Whether the peer reads every write immediately.
    """

    def __init__(self, protocol: asyncio.Protocol, *, reads_at_once: bool = False) -> None:
        super().__init__({"peername": ("192.0.2.1", 4711), "sockname": ("192.0.2.2", 6650)})
        self.received = bytearray()
        self.writes: list[int] = []
        self.reads_at_once = reads_at_once
        self._protocol = protocol
        self._waiting = bytearray()
        self._low, self._high = 16_384, 65_536
        self._writing_paused = False
        self._reading_paused = False
        self._unread: list[bytes] = []
        self._closing = False
        self._lost = False

    def connect(self) -> MemoryTransport:
        """Report the connection to the protocol."""
        self._protocol.connection_made(self)
        return self

    # -- the peer's side ----------------------------------------------------------------------

    def peer_reads(self, size: int) -> None:
        """Read up to ``size`` pending bytes."""
        self.received += self._waiting[:size]
        del self._waiting[:size]
        if self._writing_paused and len(self._waiting) <= self._low:
            self._writing_paused = False
            self._protocol.resume_writing()
        self._end_when_flushed()

    def peer_sends(self, data: bytes) -> None:
        """Pass data to the protocol; the data waits while reading is paused."""
        if self._reading_paused or self._closing:
            self._unread.append(data)
        else:
            self._protocol.data_received(data)

    def peer_closes(self) -> None:
        """Send the end of the stream."""
        if not self._protocol.eof_received():
            self.close()

    def breaks(self, error: Exception | None = None) -> None:
        self._waiting.clear()
        self._closing = True
        self._lose(error)

    # -- the transport's side -----------------------------------------------------------------

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = 65_536 if high is None else high
        self._low = self._high // 4 if low is None else low

    def get_write_buffer_size(self) -> int:
        return len(self._waiting)

    def write(self, data: Buffer) -> None:
        if self._closing:
            return
        self.writes.append(len(data))
        if self.reads_at_once and not self._waiting:
            self.received += data
            return
        self._waiting += data
        if not self._writing_paused and len(self._waiting) > self._high:
            self._writing_paused = True
            self._protocol.pause_writing()

    def writelines(self, list_of_data: Iterable[Buffer]) -> None:
        self.write(b"".join(list_of_data))

    def is_reading(self) -> bool:
        return not self._reading_paused

    def pause_reading(self) -> None:
        self._reading_paused = True

    def resume_reading(self) -> None:
        self._reading_paused = False
        unread, self._unread = self._unread, []
        for data in unread:
            self.peer_sends(data)

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        self._closing = True
        self._end_when_flushed()

    def abort(self) -> None:
        self._waiting.clear()
        self.close()

    def _end_when_flushed(self) -> None:
        if self._closing and not self._waiting:
            asyncio.get_running_loop().call_soon(self._lose, None)

    def _lose(self, error: Exception | None) -> None:
        if not self._lost:
            self._lost = True
            self._protocol.connection_lost(error)
