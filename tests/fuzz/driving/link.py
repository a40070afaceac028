"""Connections between servers of a loop: two ends, and kernel buffers between."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.fuzz.driving.stepped_loop import SteppedLoop

    Buffer = bytes | bytearray | memoryview

KERNEL_BYTES = 65_536
"""Bytes that a sender may write while its peer does not read."""
MOST_PIECES = 6
"""Most chunks in which a write arrives."""


class LinkEnd(asyncio.Transport):
    """End of a connection, as the asyncio transport of its protocol.

    Attributes:
        other: The opposite end.
        pieces: Returns the bytes of a chunk; 0: all available.
    """

    def __init__(self, loop: SteppedLoop, names: tuple[tuple[str, int], ...]) -> None:
        super().__init__({"peername": names[0], "sockname": names[1]})
        self.other: LinkEnd
        self.protocol: asyncio.Protocol | None = None
        self.pieces: Callable[[], int] = lambda: 0
        self._loop = loop
        self._inbox = bytearray()
        self._paused = self._due = self._closing = self._lost = False
        self._writer_waits = self._ended = False

    def begin(self, protocol: asyncio.BaseProtocol) -> None:
        """Hand the connection to its protocol."""
        self.protocol = cast("asyncio.Protocol", protocol)
        protocol.connection_made(self)
        self._read_soon()

    # -- what arrives ---------------------------------------------------------------------------

    def arrives(self, data: Buffer) -> None:
        """Receive bytes from the opposite end."""
        if not self._closing:
            self._inbox += data
            self._read_soon()

    def _read_soon(self) -> None:
        if not (self._due or self._paused or self._closing) and self.protocol is not None:
            self._due = True
            self._loop.call_soon(self._read)

    def _read(self) -> None:
        self._due = False
        if self._paused or self._closing or self.protocol is None:
            return
        if self._inbox:
            least = len(self._inbox) // MOST_PIECES
            size = max(self.pieces(), least) or len(self._inbox)
            data = bytes(self._inbox[:size])
            del self._inbox[:size]
            self.protocol.data_received(data)
            self.other.was_read()
        if self._inbox:
            self._read_soon()
        elif self._ended and not self._closing and not self.protocol.eof_received():
            self.close()

    def ended(self) -> None:
        """Receive the end of the stream, reported even to a non-reading server."""
        self._ended = True
        if self._paused:
            self._end()
        else:
            self._read_soon()

    # -- asyncio's transport --------------------------------------------------------------------

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = cast("asyncio.Protocol", protocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        return cast("asyncio.BaseProtocol", self.protocol)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Do nothing: both limits are 0, as the servers set."""

    def get_write_buffer_size(self) -> int:
        return max(0, len(self.other._inbox) - KERNEL_BYTES)

    def write(self, data: Buffer) -> None:
        if self._closing:
            return
        self.other.arrives(data)
        if self.get_write_buffer_size() and not self._writer_waits and self.protocol is not None:
            self._writer_waits = True
            self.protocol.pause_writing()

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        self.write(b"".join(list_of_data))

    def was_read(self) -> None:
        """Resume writing after a read by the opposite end."""
        if self._writer_waits and not self.get_write_buffer_size() and self.protocol is not None:
            self._writer_waits = False
            self.protocol.resume_writing()

    def is_reading(self) -> bool:
        return not self._paused

    def pause_reading(self) -> None:
        self._paused = True

    def resume_reading(self) -> None:
        self._paused = False
        self._read_soon()

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        self._end()

    def abort(self) -> None:
        self._end()

    def _end(self) -> None:
        self._closing = True
        if not self._lost:
            self._lost = True
            self.other.ended()
            self._loop.call_soon(self._tell)

    def _tell(self) -> None:
        if self.protocol is not None:
            self.protocol.connection_lost(None)


def linked(loop: SteppedLoop, port: int) -> tuple[LinkEnd, LinkEnd]:
    """Return the calling and the accepting end of a connection to a port."""
    names = ("127.0.0.1", 40_000), ("127.0.0.1", port)
    calling, accepting = LinkEnd(loop, names[::-1]), LinkEnd(loop, names)
    calling.other, accepting.other = accepting, calling
    return calling, accepting
