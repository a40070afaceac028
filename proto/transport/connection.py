"""Base class of all connections, as an asyncio protocol.

Outgoing: see proto.transport.sender.

Incoming: the decoder stops between frames, and while the read gate is closed no frame is processed
except control frames that break deadlocks (see proto.transport.frame_intake; in profile ``pulsar``:
none).

When the peer disconnects, every outbound entry releases its resources in the same event-loop
iteration, before any other notification.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

import proto.command_log as command_log
from limiter.flow.read_gate import ReadGate
from proto.errors import RemoteProtocolError
from proto.frames import DEFAULT_MAX_MESSAGE_BYTES, Frame, FrameDecoder, encode_command
from proto.transport.frame_intake import FrameIntake
from proto.transport.process_flow import ProcessFlow
from proto.transport.sender import Sender
from proto.transport.weak_calls import weakly

if TYPE_CHECKING:
    from collections.abc import Callable

    import proto.PulsarApi_pb2 as pb
    from limiter.flow.outbound_buffer import WriteBufferMarks
    from proto.transport.tls import TlsLayer

logger = logging.getLogger(__name__)

FRAMES_A_TURN = 256
"""Frames of a peer handled in one turn: a socket may deliver megabytes, a million of the
smallest frames."""
BYTES_A_TURN = 65_536
"""Bytes of work after which a turn ends as well, as parsing dominates its time."""
_unread: set[Connection] = set()
"""Paused connections, kept alive here: the event loop refers only to those that it reads."""


class Connection(asyncio.Protocol):
    """A connection to a peer; subclasses process the received frames.

    Args:
        max_message_bytes: Largest message; bounds the length field.
        marks: Water marks of the outbound buffer, which determine writability.
        process: Flow control shared by the connections of the process.
        tls: TLS above the plain transport; None without TLS.

    Attributes:
        turn_ended: Set by the handler of a slow frame, to process no further frame in this
            event-loop iteration.
        unfinished: Set while the last frame is handled in steps: further frames wait, unread.
        tells_from_bytes: ``bytes_kept`` is called above this number of undecoded bytes; set by
            subclasses, otherwise never.
    """

    def __init__(
        self,
        max_message_bytes: int = DEFAULT_MAX_MESSAGE_BYTES,
        marks: WriteBufferMarks | None = None,
        process: ProcessFlow | None = None,
        tls: TlsLayer | None = None,
    ) -> None:
        process = process or ProcessFlow()
        totals = process.totals
        self.gate = ReadGate(weakly(self._read_or_pause), weakly(self._gate_opened), totals)
        self.sender = Sender(self.gate, marks, process, tls, weakly(self.writability_changed))
        self.outbound = self.sender.outbound
        self.enqueue, self.write_through = self.sender.enqueue, self.sender.write_through
        self.close, self.abort = self.sender.close, self.sender.abort
        self._tls = tls
        self._hangups = process.hangups
        self._logs_commands = self._tells_commands = command_log.is_read()
        if self._logs_commands:
            self.sender.log_fields = weakly(self._fields_of_log)
        self.decoder = FrameDecoder(max_message_bytes, weakly(self.large_frame_announced))
        self.intake = FrameIntake(self.decoder, parks=process.parks_frames, totals=totals)
        self.peer = "unconnected"
        self.local = "unconnected"
        self.closed = False
        self.taking_frames = True
        self.tells_from_bytes = sys.maxsize
        self.chunks_received = 0
        self._reading = True
        self._drain_is_due = False
        self.turn_ended = False
        self.unfinished = False
        self._turns = process.turns
        self._turn_is_over = False
        self._raw: Callable[[bytes], object] | None = None
        self._told_when_lost: list[Callable[[Any], object]] = []
        self._gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.peer} {self.outbound!r} {self.gate!r}>"

    # -- overridden by subclasses -------------------------------------------------------------

    @property
    def log_fields(self) -> dict[str, object]:
        """Fields that describe the connection in structured log lines."""
        return {"address": self.peer}

    def _fields_of_log(self) -> dict[str, object]:
        return self.log_fields

    @property
    def handshake_finished(self) -> bool:
        """True if the CONNECT handshake is finished; always, unless a subclass overrides it."""
        return True

    def peer_certificate(self) -> dict[str, Any] | None:
        """Return the peer's certificate if TLS verified it, otherwise None."""
        return self._tls.peer_certificate() if self._tls is not None else None

    def accepted(self) -> None:
        """React to a newly connected socket, before any TLS handshake."""

    def connected(self) -> None:
        """React to the established connection: with TLS, after the TLS handshake."""

    def frame_received(self, frame: Frame) -> None:
        """Process a received frame.

        Raises:
            RemoteProtocolError: The peer violated the protocol; the connection is closed.
        """

    def writability_changed(self, *, writable: bool) -> None:
        """React when the outbound buffer crosses its high or low water mark."""

    def large_frame_announced(self, total_size: int, head: bytes) -> bool:
        """Return True to receive an announced large frame, False to discard its bytes.

        See FrameDecoder.
        """
        return True

    def bytes_kept(self) -> None:
        """React to more undecoded bytes than ``tells_from_bytes``.

        Called after each received chunk while the excess lasts.
        """

    def lost(self, error: Exception | None) -> None:
        """React to the end of the connection, after its outbound entries have been released."""

    def when_lost(self, *told: Callable[[Any], object]) -> None:
        """Add callbacks that receive this connection when it is lost, called in order.

        The callbacks run in the event-loop iteration of the disconnect.
        """
        self._told_when_lost += told

    # -- sending ------------------------------------------------------------------------------

    def send(self, command: pb.BaseCommand) -> None:
        """Queue a command for sending, without a permit of the memory limiter."""
        data = encode_command(command)
        self.enqueue([data], len(data))

    def resume_writing(self) -> None:
        """Continue sending; called by asyncio when the transport's own buffer is empty."""
        self.sender.buffer_is_empty()

    # -- receiving ----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the connection; called by asyncio when the socket is connected."""
        self.peer = _address(transport.get_extra_info("peername"))
        self.sender.attach(cast("asyncio.Transport", transport), self.peer)
        self.local = _address(transport.get_extra_info("sockname"))
        if self._logs_commands:
            command_log.connection_made(self.peer, self.local, self.log_fields)
        self.accepted()
        if self._tls is None:
            self.connected()
        else:
            self._decrypted(self._tls, b"")

    def data_received(self, data: bytes) -> None:
        """Process a received chunk of bytes; called by asyncio."""
        self.chunks_received += 1
        if self._tls is None:
            self._plain_received(data)
        else:
            self._decrypted(self._tls, data)

    def _plain_received(self, data: bytes) -> None:
        if self.sender.closing or not self.taking_frames:
            return  # The bytes have no receiver, and keeping them would have no bound.
        if self._raw is not None:
            self._raw(data)
        else:
            self.decoder.feed(data)
            self.take_frames()

    # -- TLS ----------------------------------------------------------------------------------

    def _decrypted(self, tls: TlsLayer, ciphertext: bytes) -> None:
        """Continue the TLS handshake, or decrypt received bytes and pass them on."""
        was_established = tls.established
        try:
            plain = tls.receive(ciphertext)
        except RemoteProtocolError as error:
            logger.info("closing %s: %s", self.peer, error, extra=self.log_fields)
            self.tls_failed(error)
            self.sender.send_records(tls)
            self.abort()
            return
        self.sender.send_records(tls)
        if tls.established and not was_established:
            self.connected()
            self.sender.hand_over()
        if plain:
            self._plain_received(plain)
        if tls.ended:
            self.abort()

    def tls_failed(self, error: RemoteProtocolError) -> None:
        """React to a TLS failure, before the connection is closed."""

    # -- frames -------------------------------------------------------------------------------

    def receive_raw(self, sink: Callable[[bytes], object]) -> None:
        """Stop decoding frames, and pass undecoded and all further received bytes to ``sink``.

        No frame may be parked: a caller that waits for this disables parking meanwhile.
        """
        self._raw = sink
        residue = self.decoder.take_residue()
        if residue:
            sink(residue)

    def receive_frames(self, data: bytes | memoryview) -> None:
        """Stop passing on raw bytes, and decode frames again, beginning with ``data``."""
        self._raw = None
        self.decoder.feed(data)
        self.take_frames()

    def take_again(self, frame: Frame) -> None:
        """Put a received frame back, to be processed first in a later event-loop iteration."""
        if not self.closed:
            self.intake.give_back(frame)
            self._drain_soon()

    def take_frames(self) -> None:
        """Process received frames; while reading is paused, only those that may overtake others.

        The connection's exception boundary: an error here closes this connection only.
        """
        try:
            self._wants_turn(not self._took_all() and not self.closed)
            if self._turn_is_over:
                self._drain_soon()
            self._read_or_pause()
            if self.decoder.buffered_bytes > self.tells_from_bytes:
                self.bytes_kept()
        except RemoteProtocolError as error:
            logger.info("closing %s: %s", self.peer, error, extra=self.log_fields)
            self.abort()
        except Exception:
            logger.exception("closing %s after an internal error", self.peer, extra=self.log_fields)
            self.abort()

    def _wants_turn(self, wanted: bool) -> None:
        """Record whether received frames wait for a later event-loop iteration."""
        self._turns.wanted += wanted - self._turn_is_over
        self._turn_is_over = wanted

    def _took_all(self) -> bool:
        """Process frames for one event-loop iteration; return False if more may wait."""
        taken_bytes, self.turn_ended = 0, False
        end = perf_counter() + self._turns.seconds
        for _ in range(FRAMES_A_TURN):
            frame = None
            if self.unfinished:
                break
            if self._takes_frames():
                frame = self.intake.next_frame(gate_open=self.gate.open)
            if frame is None:
                return True
            if self._tells_commands:
                self._tell_command(frame)
            self.frame_received(frame)
            taken_bytes += frame.work_bytes()
            if taken_bytes >= BYTES_A_TURN or self.turn_ended or perf_counter() >= end:
                break
        return False

    def record_commands(self, record: command_log.CommandRecord | None) -> None:
        """Record commands in both directions from now on; None stops recording."""
        self.sender.record = record
        self._tells_commands = self.sender.tells_commands = (
            self._logs_commands or record is not None
        )

    def _tell_command(self, frame: Frame) -> None:
        if self._logs_commands:
            command_log.received(self.peer, frame, self.log_fields)
        if self.sender.record is not None:
            self.sender.record.received(frame)

    def _takes_frames(self) -> bool:
        ended = self.closed or self.sender.closing
        return self.taking_frames and self._raw is None and not ended

    def take_no_more(self) -> None:
        """Drop all frames received from now on; earlier requests are still answered.

        Reading goes on: closing a socket with unread bytes resets the connection, and the peer then
        loses responses that it has not read.
        """
        self.taking_frames = False
        self._read_or_pause()

    # -- pausing ------------------------------------------------------------------------------

    @property
    def paused(self) -> bool:
        """True if received frames are not processed immediately, or the socket is not read."""
        return not (self.gate.open and self._reading)

    def _gate_opened(self) -> None:
        """Schedule the processing of waiting frames, before the socket is read again."""
        if not (self._reading and self.intake.idle):
            self._drain_soon()

    def _drain_soon(self) -> None:
        if not self._drain_is_due:
            self._drain_is_due = True
            asyncio.get_running_loop().call_soon(self._drain_then_read)

    def _drain_then_read(self) -> None:
        self._drain_is_due = False
        if not self.closed and self.sender.transport is not None:
            self.take_frames()

    def _read_or_pause(self) -> None:
        wanted = self.gate.open or self.intake.wants_more or not self.taking_frames
        wanted = wanted and not self._turn_is_over
        transport = self.sender.transport
        if wanted is self._reading or transport is None or transport.is_closing():
            return
        if wanted and self._drain_is_due:
            return  # Waiting frames come first.
        self._reading = wanted
        if wanted:
            _unread.discard(self)
            self._watch_for_hangup(on=False)
            transport.resume_reading()
        else:
            _unread.add(self)
            transport.pause_reading()
            self._watch_for_hangup(on=True)

    def _watch_for_hangup(self, *, on: bool) -> None:
        """Start or stop to poll for a disconnect, which the event loop misses while not reading."""
        if self._hangups is None or self.sender.descriptor < 0:
            return
        if on:
            self._hangups.watch(self.sender.descriptor, self._hung_up)
        else:
            self._hangups.forget(self.sender.descriptor)

    def _hung_up(self) -> None:
        logger.debug("%s disconnected while its reading was paused", self.peer)
        self.abort()

    # -- ending -------------------------------------------------------------------------------

    def eof_received(self) -> bool:
        """Close the connection when the peer ends its stream, even if responses are queued."""
        self.abort()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """End the connection; called by asyncio when the socket is closed."""
        self.closed = True
        _unread.discard(self)
        if self._logs_commands:
            command_log.connection_lost(self.peer, self.log_fields)
        self._watch_for_hangup(on=False)
        self.sender.lost()
        self.intake.discard()
        self.decoder.discard()
        self._raw = None
        self._wants_turn(False)
        self.gate.end()
        self._tell(exc)
        if self._tls is not None:
            self._tls.discard()
        if not self._gone.done():
            self._gone.set_result(None)

    def _tell(self, error: Exception | None) -> None:
        """Notify all listeners that the connection is lost, even if a listener raises."""
        for told in (lambda _: self.lost(error), *self._told_when_lost):
            try:
                told(self)
            except Exception:
                logger.exception("%s is lost, and resources that it held may leak", self.peer)

    async def wait_closed(self) -> None:
        """Wait until the connection is closed."""
        await asyncio.shield(self._gone)


def _address(name: object) -> str:
    if isinstance(name, tuple) and len(name) >= 2:
        host = f"[{name[0]}]" if ":" in str(name[0]) else str(name[0])
        return f"{host}:{name[1]}"
    return str(name) if name else "unknown"
