"""The sending half of a connection: entries from the queue to the kernel, and from there.

Entries wait in our own queue and are handed to the transport whole; the transport's own limits
are 0, so that its ``resume_writing`` means that the kernel has every byte. Only then is an entry
gone, and only then does it give back what it holds.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import proto.command_log as command_log
from limiter.flow.causes import PauseCause
from limiter.flow.outbound_buffer import OutboundBuffer, WriteBufferMarks
from proto.frames import encode_command
from proto.transport.outbound_queue import OutboundEntry, OutboundQueue
from proto.transport.process_flow import ProcessFlow
from proto.transport.send_queue import forget_unsent, unacknowledged_bytes
from proto.transport.writers import PLAIN_STEP_BYTES, PlainWriter, TlsWriter, Writer, write_all

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence

    import proto.PulsarApi_pb2 as pb
    from limiter.flow.read_gate import ReadGate
    from proto.transport.tls import TlsLayer

    Buffer = bytes | memoryview

logger = logging.getLogger(__name__)


class Sending:
    """Sends for a connection; see proto.transport.connection.Connection, which is the whole.

    Attributes:
        gate: The connection's, closed here when the process has too much pending.
        outbound: The weight of what waits.
        passes_queue: Whether frames may go past the queue: never with encryption.
        in_a_pipe: Its bytes are bounded by the marks, and nothing but the other side of its pipe
            may stop its reading.
    """

    gate: ReadGate
    peer: str

    def __init__(
        self,
        marks: WriteBufferMarks | None,
        process: ProcessFlow | None,
        tls: TlsLayer | None,
    ) -> None:
        self._process = process or ProcessFlow()
        self.outbound = OutboundBuffer(marks or WriteBufferMarks(), self._process.outbound)
        self._transport: asyncio.Transport | None = None
        self._descriptor = -1
        self.in_a_pipe = False
        self._logs_commands = command_log.is_read()
        self._closing = False
        self._tls = tls
        self._tls_bytes = 0
        self.passes_queue = tls is None
        writer: Writer = PlainWriter() if tls is None else TlsWriter(tls)
        self._queue = OutboundQueue(self.outbound, writer, self._crossed_a_mark)

    def abort(self) -> None:
        """Close now; the whole connection's to say how."""
        raise NotImplementedError

    def call_soon(self, callback: Callable[[], object]) -> None:
        """Call back in the loop's next turn; the whole connection's to say how."""
        raise NotImplementedError

    def writability_changed(self, *, writable: bool) -> None:
        """The outbound buffer crossed a mark."""

    def _crossed_a_mark(self, writable: bool) -> None:
        self.writability_changed(writable=writable)
        if writable:
            self.outbound.tell_listeners()

    def send(self, command: pb.BaseCommand) -> None:
        """Queue a command that holds no memory permit."""
        data = encode_command(command)
        self.enqueue([data], len(data))

    def enqueue(
        self,
        buffers: Sequence[Buffer],
        size_bytes: int,
        on_left: Callable[[], object] | None = None,
        paid_bytes: int = 0,
    ) -> None:
        """Queue bytes as one entry.

        Args:
            buffers: The bytes, in order; they must not change until they have left.
            size_bytes: Their length.
            on_left: Called once, when the kernel has the last byte or the connection is lost.
            paid_bytes: What of them a permit of the memory limiter pays for.
        """
        entry = OutboundEntry(buffers, size_bytes, on_left, paid_bytes)
        if self._closing or self._transport is None or self._transport.is_closing():
            entry.leave()
            return
        if self._logs_commands:
            command_log.sent(self.peer, buffers, size_bytes, in_a_pipe=self.in_a_pipe)
        self._queue.add(entry)
        if not self._process.parks_frames:
            self._queue.judge()  # As Netty: before the kernel was asked.
        self._hand_over()
        self._queue.judge()
        self._wait_for_room()

    def _wait_for_room(self) -> None:
        """Read no more while the process has too much pending, and this peer some of it."""
        if self._process.outbound.full and self.outbound.pending_bytes and not self.in_a_pipe:
            self._process.outbound.call_when_less(self._process_has_room)
            self.gate.close_for(PauseCause.PROCESS_OUTBOUND_FULL)

    @property
    def may_write_through(self) -> bool:
        """True if ``write_through`` would: nothing is queued, and ``passes_queue``."""
        transport = self._transport
        if transport is None or self._closing or not self.passes_queue or not self._queue.idle:
            return False
        return not transport.is_closing()

    def write_through(
        self,
        frame: bytes | Sequence[Buffer],
        part: Callable[[], Callable[[], object]],
        paid_bytes: int,
    ) -> bool:
        """Give the kernel a frame past the queue, where nothing is queued: an entry costs more.

        For what many connections are sent at once, and for what is there at once. What the kernel
        does not take at once becomes an entry like every other.

        Args:
            frame: The bytes, in one piece or several; they must not change until they have left.
            part: Asked, if it becomes an entry, what to call when that has left.
            paid_bytes: See ``enqueue``.

        Returns:
            False when something is queued, or encryption is, or it is too much to be given at
            once: then nothing was sent.
        """
        transport = self._transport
        if transport is None or not self.may_write_through:
            return False
        buffers = (frame,) if isinstance(frame, bytes) else frame
        size_bytes = sum(map(len, buffers))
        if size_bytes > PLAIN_STEP_BYTES:
            return False
        try:
            write_all(transport, buffers)
        except Exception:
            logger.exception("closing %s after a write that failed", self.peer)
            self.abort()
            return True
        self._queue.written_bytes += size_bytes
        if self._logs_commands:
            command_log.sent(self.peer, buffers, size_bytes, in_a_pipe=self.in_a_pipe)
        if transport.get_write_buffer_size():
            self._queue.was_written(OutboundEntry(buffers, size_bytes, part(), paid_bytes))
            self._queue.judge()
            self._wait_for_room()
        return True

    def _process_has_room(self) -> None:
        self.gate.open_for(PauseCause.PROCESS_OUTBOUND_FULL)

    def _hand_over(self) -> None:
        transport = self._transport
        if transport is None or transport.is_closing() or not self._established():
            return
        self._write(transport, self._queue.hand_over)
        self._close_when_empty(transport)

    def resume_writing(self) -> None:
        """Asyncio's word that the transport's own buffer is empty."""
        transport = self._transport
        if transport is not None and self._established():
            self._write(transport, self._queue.drained)
            # Within this call asyncio's transport must not be closed: it would end twice.
            if self._closing and not self._queue:
                self.call_soon(self._hand_over)

    def _write(
        self, transport: asyncio.Transport, hand_over: Callable[[asyncio.Transport], None]
    ) -> None:
        """Give the transport entries; what breaks here ends this peer only.

        How much of them was written is unknown then, so nothing may follow.
        """
        try:
            hand_over(transport)
        except Exception:
            logger.exception("closing %s after a write that failed", self.peer)
            self.abort()
        else:
            if not self._queue and self.gate.is_closed_for(PauseCause.PROCESS_OUTBOUND_FULL):
                # Whatever the others have pending, this one has nothing.
                self._process.outbound.forget(self._process_has_room)
                self._process_has_room()

    def _close_when_empty(self, transport: asyncio.Transport) -> None:
        if self._closing and not self._queue and not transport.is_closing():
            if self._tls is not None:
                transport.write(self._tls.close())
            transport.close()

    # -- what has arrived at the peer -----------------------------------------------------------

    @property
    def written_bytes(self) -> int:
        """All that was given to the transport; with TLS as ciphertext."""
        return self._queue.written_bytes + self._tls_bytes

    def acknowledged_bytes(self) -> int:
        """Return how many bytes the peer has acknowledged since it connected.

        Where the system does not tell (and without a socket), what the kernel took.
        """
        if self._transport is None:
            return 0
        unsent = self._transport.get_write_buffer_size() + unacknowledged_bytes(self._descriptor)
        return max(0, self.written_bytes - unsent)

    @property
    def outstanding(self) -> bool:
        """True if the peer has not acknowledged everything that was queued for it."""
        if self._transport is None:
            return False
        return bool(self._queue) or unacknowledged_bytes(self._descriptor) > 0

    def reset(self) -> None:
        """Abort, and let the kernel forget what the peer has not read.

        Otherwise it keeps a full send buffer for minutes, for a peer that does not know.
        """
        if self._descriptor >= 0 and self._transport is not None:
            forget_unsent(self._descriptor)
        self.abort()

    def _established(self) -> bool:
        return self._tls is None or self._tls.established
