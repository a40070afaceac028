"""A server's end of a simulated connection, as an asyncio transport."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, cast

from loadgen.virtual.links.pipe import take

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from loadgen.virtual.links.pipe import Buffer, Pipe
    from loadgen.virtual.loop import VirtualLoop
    from loadgen.virtual.processor import Processor

READ_BYTES = 262_144
"""Maximum bytes of a single read."""
JOINED_BYTES = 16_384
"""Pieces that together have fewer bytes are handed over as one."""
HANGUP_SECONDS = 0.1
"""Interval at which servers detect departed peers of unread connections."""


class ServerTransport(asyncio.Transport):
    """A server's transport, which also receives the peer's bytes for the server.

    Attributes:
        out: The pipe to the peer; the network sets ``out``, ``incoming`` and ``names``.
        names: Addresses of the peer and of this end.
    """

    def __init__(self, loop: VirtualLoop, processor: Processor) -> None:
        super().__init__()
        self.processor = processor
        self.out: Pipe
        self.incoming: Pipe
        self.names: tuple[tuple[str, int], ...] = ()
        self._loop = loop
        self._protocol: asyncio.Protocol | None = None
        self._pieces: deque[Buffer] = deque()
        self._paused = self._read_is_due = self._closing = self._lost = False
        self._writing_is_paused = False
        self._peer_ended = False

    def begin(self, protocol: asyncio.BaseProtocol) -> None:
        """Start the protocol on this connection."""
        self._protocol = cast("asyncio.Protocol", protocol)
        protocol.connection_made(self)
        self.arrived()

    # -- asyncio's transport ------------------------------------------------------------------

    def get_extra_info(self, name: str, default: object = None) -> object:
        """Return the address of an end, or a function for the number of unacknowledged bytes."""
        peer, own = self.names
        known: dict[str, object] = {"peername": peer, "sockname": own}
        known["unacknowledged_bytes"] = lambda: self.out.unacknowledged
        return known.get(name, default)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Replace the protocol that receives the bytes."""
        self._protocol = cast("asyncio.Protocol", protocol)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Do nothing: the limits are always 0, as the servers request."""

    def get_write_buffer_size(self) -> int:
        """Return the number of bytes that the kernel has not accepted."""
        return self.out.unsent

    def is_closing(self) -> bool:
        """Return whether the connection is closed or closing."""
        return self._closing

    def write(self, data: Buffer) -> None:  # type: ignore[override]
        """Send bytes, without copying."""
        self.writelines((data,))

    def writelines(self, list_of_data: Iterable[Buffer]) -> None:  # type: ignore[override]
        """Send several pieces of bytes, without copying."""
        if self._closing:
            return
        buffers = cast("Sequence[Buffer]", list_of_data)
        self.processor.charge(self.processor.times.write)
        self.out.send(buffers, sum(map(len, buffers)))
        if self.out.unsent and not self._writing_is_paused and self._protocol is not None:
            self._writing_is_paused = True
            self._protocol.pause_writing()

    def pause_reading(self) -> None:
        """Stop reading: arriving bytes stay in the kernel."""
        self._paused = True

    def resume_reading(self) -> None:
        """Read again after :meth:`pause_reading`."""
        if self._paused and not self._closing:
            self._paused = False
            self.arrived()

    def close(self) -> None:
        """Close as soon as the kernel has accepted all bytes."""
        if not self._closing:
            self._closing = True
            if not self.out.unsent:
                self._end(None)

    def abort(self) -> None:
        """Close immediately, dropping bytes that the kernel has not accepted."""
        self._closing = True
        self.out.forget_unsent()
        self._end(None)

    # -- sending ------------------------------------------------------------------------------

    def writable(self) -> None:
        """Continue to send, as soon as the processor is free."""
        self.processor.serve(self._go_on)

    def _go_on(self) -> None:
        if self._lost:
            return
        self.processor.charge(self.processor.times.write)
        self.out.go_on()
        if self.out.unsent:
            return
        if self._closing:
            self._end(None)
        elif self._writing_is_paused and self._protocol is not None:
            self._writing_is_paused = False
            self._protocol.resume_writing()

    # -- receiving: the sink of ``incoming`` --------------------------------------------------

    def sent(self, buffers: Sequence[Buffer]) -> None:
        """Keep bytes that the peer sent until the server reads them."""
        self._pieces.extend(buffers)

    def arriving(self) -> None:
        """Do nothing: visible bytes are read when the processor is free."""

    def arrived(self) -> None:
        """Read the arrived bytes as soon as the processor is free."""
        if self._read_is_due or self._paused or self._closing or self._protocol is None:
            return
        if self.incoming.visible > self.incoming.read:
            self._read_is_due = True
            self.processor.serve(self._read)

    def _read(self) -> None:
        self._read_is_due = False
        if self._paused or self._closing or self._protocol is None:
            return
        size = min(self.incoming.visible - self.incoming.read, READ_BYTES)
        pieces, times = take(self._pieces, size), self.processor.times
        self.processor.charge(len(pieces) * times.read + size * times.read_byte)
        self.incoming.was_read(self.incoming.read + size)
        received = self._protocol.data_received
        if len(pieces) > 1 and size <= JOINED_BYTES:
            received(b"".join(pieces))
        else:
            for piece in pieces:
                received(piece)  # type: ignore[arg-type]
        self.arrived()

    def ended(self, *, reset: bool) -> None:
        """Handle that the peer has closed.

        While reading is paused, the server notices it a moment later.
        """
        if self._peer_ended or self._lost:
            return
        self._peer_ended = True
        unseen = self._paused and not self.out.unsent
        when = self._loop.time() + (HANGUP_SECONDS if unseen else 0.0)
        self._loop.after(when, self.processor.serve, self._hung_up, reset)

    def _hung_up(self, reset: bool) -> None:
        if self._lost:
            return
        if reset:
            self._closing = True
            self.out.forget_unsent()
            self._end(ConnectionResetError(104, "Connection reset by peer"))
        elif self._protocol is None or not self._protocol.eof_received():
            self.close()

    # -- the end ------------------------------------------------------------------------------

    def _end(self, error: Exception | None) -> None:
        if self._lost:
            return
        self._lost = True
        if not self._peer_ended:
            self.out.end(reset=self.incoming.visible > self.incoming.read)
        self._pieces.clear()
        self._loop.call_soon(self._tell, error)

    def _tell(self, error: Exception | None) -> None:
        protocol, self._protocol = self._protocol, None
        if protocol is not None:
            protocol.connection_lost(error)
