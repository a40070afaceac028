"""Sender of a connection: writes outbound entries from a queue to the kernel.

Entries wait in a queue of their own and are handed to the transport whole; the transport's own
limits are 0, so that its ``resume_writing`` means that the kernel has every byte. Only then is an
entry done, and releases its resources.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import proto.command_log as command_log
from limiter.flow.causes import PauseCause
from limiter.flow.outbound_buffer import OutboundBuffer, WriteBufferMarks
from proto.transport.outbound_queue import (
    OutboundEntry,
    OutboundQueue,
    forget_unsent,
    unacknowledged_bytes,
)
from proto.transport.weak_calls import weakly
from proto.transport.writers import PLAIN_STEP_BYTES, PlainWriter, TlsWriter, Writer, write_all

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from limiter.flow.read_gate import ReadGate
    from proto.transport.process_flow import ProcessFlow
    from proto.transport.tls import TlsLayer

    Buffer = bytes | memoryview

logger = logging.getLogger(__name__)


MAX_RECORDS_WAITING = 65_536
"""Most waiting bytes of TLS's own records: a handshake has some 10,000 at most."""


class Sender:
    """Sender of the outbound entries of a connection.

    Args:
        gate: The connection's gate, closed when the process has too many pending bytes.
        marks: Water marks of the outbound buffer, which determine writability.
        process: Flow control shared by the connections of the process.
        tls: TLS above the plain transport; None without TLS.
        on_mark: Called with ``writable`` when a mark was crossed.

    Attributes:
        transport: Asyncio's transport; None before the connection and after its loss.
        descriptor: The socket's file descriptor; -1 without a socket.
        peer: The peer's address.
        outbound: Counter of the bytes of the waiting entries.
        closing: True if further entries are dropped.
        passes_queue: Whether frames may bypass the queue; with encryption none does.
        in_a_pipe: Its bytes are bounded by the marks, and only the other side of its pipe may pause
            its reading.
        on_sent: Called when bytes are on their way to the peer.
        log_fields: Returns the connection's fields in structured log lines.
        screen: Inspects each entry and may change it; returns False to drop the entry.
    """

    def __init__(
        self,
        gate: ReadGate,
        marks: WriteBufferMarks | None,
        process: ProcessFlow,
        tls: TlsLayer | None,
        on_mark: Callable[..., object],
    ) -> None:
        self._gate = gate
        self._process = process
        self._tls = tls
        self._tls_bytes = 0
        self._records_waiting = 0
        self._on_mark = on_mark
        self._logs_commands = self.tells_commands = command_log.is_read()
        self.record: command_log.CommandRecord | None = None
        self.log_fields: Callable[[], Mapping[str, object]] = dict
        self.transport: asyncio.Transport | None = None
        self.descriptor = -1
        self._unacknowledged: Callable[[], int] | None = None
        self.peer = "unconnected"
        self.outbound = OutboundBuffer(marks or WriteBufferMarks(), process.outbound)
        self.closing = False
        self.passes_queue = True
        self.in_a_pipe = False
        self.on_sent: Callable[[], object] | None = None
        self.screen: Callable[[OutboundEntry], bool] | None = None
        writer: Writer = PlainWriter() if tls is None else TlsWriter(tls)
        self._queue = OutboundQueue(self.outbound, writer, weakly(self._crossed_a_mark))

    def attach(self, transport: asyncio.Transport, peer: str) -> None:
        """Begin to use the transport of the established connection."""
        self.transport, self.peer = transport, peer
        transport.set_write_buffer_limits(high=0, low=0)
        sock = transport.get_extra_info("socket")
        self.descriptor = -1 if sock is None else sock.fileno()
        # A transport without a socket may provide its own count.
        self._unacknowledged = transport.get_extra_info("unacknowledged_bytes")

    def _crossed_a_mark(self, writable: bool) -> None:
        self._on_mark(writable=writable)
        if writable:
            self.outbound.tell_listeners()

    def enqueue(
        self,
        buffers: Sequence[Buffer],
        size_bytes: int,
        on_left: Callable[[], object] | None = None,
        paid_bytes: int = 0,
    ) -> None:
        """Queue bytes for sending, as one outbound entry.

        Args:
            buffers: The bytes, in order; they must not change until they have left.
            size_bytes: The length of ``buffers`` in bytes.
            on_left: Called once, when the kernel has the last byte or the connection is lost.
            paid_bytes: The bytes covered by a permit of the memory limiter.
        """
        entry = OutboundEntry(buffers, size_bytes, on_left, paid_bytes)
        if self.screen is not None and not self.in_a_pipe:
            if not self.screen(entry):
                entry.leave()
                return
            buffers, size_bytes = entry.buffers, entry.size_bytes
        if self.closing or self.transport is None or self.transport.is_closing():
            entry.leave()
            return
        if self.tells_commands:
            self._tell_commands(buffers, size_bytes)
        self._queue.add(entry)
        if not self._process.parks_frames:
            self._queue.judge()  # As Netty: before the write to the kernel.
        self.hand_over()
        self._queue.judge()
        self._wait_for_room()
        self._tell_of_bytes()

    def _tell_of_bytes(self) -> None:
        if self.on_sent is not None and self.transport is not None:
            self.on_sent()

    def _wait_for_room(self) -> None:
        """Close the read gate while the process has too many unsent bytes, some for this peer."""
        if self._process.outbound.full and self.outbound.pending_bytes and not self.in_a_pipe:
            self._process.outbound.call_when_less(self._process_has_room)
            self._gate.close_for(PauseCause.PROCESS_OUTBOUND_FULL)

    @property
    def may_write_through(self) -> bool:
        """True if a frame may bypass the queue, because the queue is empty and TLS is not used."""
        transport = self.transport
        if transport is None or self.closing or not self.passes_queue or self._queue:
            return False
        if self._tls is not None:
            return False
        return not transport.is_closing()

    def write_through(
        self,
        frame: bytes | Sequence[Buffer],
        part: Callable[[], Callable[[], object]],
        paid_bytes: int,
    ) -> bool:
        """Write a frame to the transport without queueing it, to save the cost of an entry.

        For a frame sent to many connections simultaneously, and for a response that is ready
        immediately. Bytes that the kernel does not accept are queued like any other data.

        Args:
            frame: The bytes, in one piece or several; they must not change until they have left.
            part: Returns the callback for the end of the entry, if an entry is needed.
            paid_bytes: See ``enqueue``.

        Returns:
            False, with nothing sent, if the queue is not empty, TLS is used, or the frame is too
                large for a single write.
        """
        transport = self.transport
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
        if self.tells_commands:
            self._tell_commands(buffers, size_bytes)
        if transport.get_write_buffer_size():
            self._queue.was_written(OutboundEntry(buffers, size_bytes, part(), paid_bytes))
            self._queue.judge()
            self._wait_for_room()
        self._tell_of_bytes()
        return True

    def _tell_commands(self, buffers: Sequence[Buffer], size_bytes: int) -> None:
        if self._logs_commands:
            fields = self.log_fields()
            command_log.sent(self.peer, buffers, size_bytes, fields, in_a_pipe=self.in_a_pipe)
        if self.record is not None:
            self.record.sent(buffers, size_bytes, in_a_pipe=self.in_a_pipe)

    def _process_has_room(self) -> None:
        self._gate.open_for(PauseCause.PROCESS_OUTBOUND_FULL)

    def hand_over(self) -> None:
        """Write queued entries to the kernel; if closing, close once all entries are written."""
        transport = self.transport
        if transport is None or transport.is_closing() or not self.established:
            return
        self._write(transport, self._queue.hand_over)
        self._close_when_empty(transport)

    def buffer_is_empty(self) -> None:
        """Write the next entries, now that the transport's buffer is empty."""
        transport = self.transport
        if transport is not None and self.established:
            self._write(transport, self._queue.drained)
            # asyncio's transport must not be closed within this call: it would end twice.
            if self.closing and not self._queue:
                asyncio.get_running_loop().call_soon(self.hand_over)

    def _write(
        self, transport: asyncio.Transport, hand_over: Callable[[asyncio.Transport], bool]
    ) -> None:
        """Write entries to the transport; an error here closes this connection only.

        After an error the number of written bytes is unknown, so no further bytes may follow.
        """
        try:
            goes_on = hand_over(transport)
        except Exception:
            logger.exception("closing %s after a write that failed", self.peer)
            self.abort()
        else:
            if goes_on:
                asyncio.get_running_loop().call_soon(self.buffer_is_empty)
            if not self._queue and self._gate.is_closed_for(PauseCause.PROCESS_OUTBOUND_FULL):
                # The process is full, but this connection has nothing pending.
                self._process.outbound.forget(self._process_has_room)
                self._process_has_room()

    def _close_when_empty(self, transport: asyncio.Transport) -> None:
        if self.closing and not self._queue and not transport.is_closing():
            if self._tls is not None:
                transport.write(self._tls.close())
            transport.close()

    # -- acknowledgements -------------------------------------------------------------------------

    @property
    def written_bytes(self) -> int:
        """Number of bytes ever written to the transport; with TLS, bytes of ciphertext."""
        return self._queue.written_bytes + self._tls_bytes

    def acknowledged_bytes(self) -> int:
        """Return the number of bytes acknowledged by the peer since it connected.

        If the system does not report it (or without a socket), the bytes accepted by the kernel.
        """
        if self.transport is None:
            return 0
        unsent = self.transport.get_write_buffer_size() + self._in_the_kernel()
        return max(0, self.written_bytes - unsent)

    @property
    def outstanding(self) -> bool:
        """True if any queued or sent bytes are unacknowledged."""
        if self.transport is None:
            return False
        return bool(self._queue) or self._in_the_kernel() > 0

    def _in_the_kernel(self) -> int:
        if self._unacknowledged is not None:
            return self._unacknowledged()
        return unacknowledged_bytes(self.descriptor)

    # -- ending -------------------------------------------------------------------------------

    def close(self) -> None:
        """Send the queued entries, then close; drop further entries. Idempotent."""
        if not self.established:
            self.abort()
        elif not self.closing:
            self.closing = True
            self.hand_over()

    def abort(self) -> None:
        """Close immediately; queued entries release their resources."""
        self.closing = True
        if self.transport is not None:
            self.transport.abort()

    def reset(self) -> None:
        """Close immediately, and free the kernel's send buffer.

        Otherwise the kernel keeps a full send buffer for minutes, for an unaware peer.
        """
        if self.descriptor >= 0 and self.transport is not None:
            forget_unsent(self.descriptor)
        self.abort()

    def lost(self) -> None:
        """Drop the queued entries of a lost connection; each releases its resources."""
        self.transport = None
        self._queue.discard()
        self._process.outbound.forget(self._process_has_room)

    # -- TLS ----------------------------------------------------------------------------------

    @property
    def established(self) -> bool:
        """True if bytes may be sent: with TLS, after its handshake."""
        return self._tls is None or self._tls.established

    def send_records(self, tls: TlsLayer) -> None:
        """Send TLS's own records: handshake, alerts and keys.

        A peer may request such records without end (KeyUpdate), and read none.
        """
        records, transport = tls.take_outgoing(), self.transport
        if not records or transport is None or transport.is_closing():
            return
        if not transport.get_write_buffer_size():
            self._records_waiting = 0
        self._records_waiting += len(records)
        self._tls_bytes += len(records)
        transport.write(records)
        if self._records_waiting > MAX_RECORDS_WAITING:
            logger.warning("closing %s: it does not read the TLS responses it requests", self.peer)
            self.reset()
