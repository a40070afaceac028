"""A client's connection to a broker or proxy: it dispatches commands, and limits the client.

Whatever the peer does, its connection's resources are released: a slow reader is paused, a
non-reading peer is closed, a disconnect is detected.
"""

from __future__ import annotations

import logging
from itertools import count
from typing import TYPE_CHECKING, Protocol

import proto.PulsarApi_pb2 as pb
from limiter.flow.flow_control import FlowControl
from limiter.flow.response_budget import ResponseBudget
from limiter.slow_peers.peer import WORTHY_BYTES, WriteProgress
from proto.commands import NO_REQUEST, error_command, with_body
from proto.errors import CommandTooLargeError
from proto.excerpts import one_line
from proto.frames import command_size_in, command_type_in, encode_command
from proto.parsing.command_bounds import check_command_size, check_first_frame
from proto.transport.connection import Connection
from proto.transport.weak_calls import weakly
from server.connection.keep_alive_timer import KeepAliveTimer
from server.connection.limited_connection import LimitedConnection
from server.limits.unfinished_frames import COUNTED_BYTES, FIRST_COUNTED_BYTES

if TYPE_CHECKING:
    from enum import Enum

    from proto.frames import Frame
    from server.connection.command_table import CommandTable
    from server.connection.flow_parts import FlowParts
    from server.tls.handshakes import AcceptedTls

logger = logging.getLogger(__name__)

_NUMBERS = count(1)
SHOWN_VERSION = 100
"""Most characters of a client's version in log lines."""
_PONG = encode_command(pb.BaseCommand(type=pb.BaseCommand.PONG, pong=pb.CommandPong()))
_PING_TYPE, _PONG_TYPE = pb.BaseCommand.PING, pb.BaseCommand.PONG
_NOT_COUNTED = (_PING_TYPE, pb.BaseCommand.SEND, pb.BaseCommand.ACK, pb.BaseCommand.FLOW)


class FrameFaults(Protocol):
    """An interface with the methods of injected faults that a client's connection calls."""

    def frame(self, frame: Frame) -> Frame | None:
        """Return the received frame to process, possibly changed by a fault; None to drop it."""

    def lost(self) -> None:
        """Discard the delayed frames of a lost connection."""


class ServedConnection(Connection):
    """Base class of a client's connection to a broker or proxy.

    Attributes:
        progress: How fast the client has read so far.
        many_clients: True if the peer announced itself as a proxy.
        served: True once the connection is established, with TLS after the handshake.
        number: The number of the connection in this process, for logs and REST.
        refusal: The reason for a refusal, if there are too many connections; None otherwise.
        responses: Limits the bytes of responses that are being built.
        client_version: The client's announced version; empty before CONNECT.
        faults: Applies injected faults; None without floodgateFaultsEnabled.
    """

    faults: FrameFaults | None = None

    def __init__(
        self,
        flow: FlowParts,
        commands: CommandTable,
        max_message_bytes: int,
        tls: AcceptedTls | None = None,
    ) -> None:
        layer = None if tls is None else tls.layer
        super().__init__(max_message_bytes, flow.rules.marks, flow.process, layer)
        self.served = False
        self._handshakes = None if tls is None else tls.handshakes
        if self._handshakes is not None:
            self._handshakes.began(self)
        self._commands = commands
        self.state = commands.handshake[0]
        self._flow_parts = flow
        self._rules = flow.connection_rules
        self._not_counted = _NOT_COUNTED if self._rules.spares_messages else (_PING_TYPE,)
        self.sender.passes_queue = self._rules.passes_queue
        self.sender.on_sent = weakly(self._sent)
        self._flow: FlowControl | None = FlowControl(flow.rules, self.gate, flow.clock)
        self.responses = ResponseBudget(flow.rules.max_response_bytes, self.gate, flow.totals)
        self.progress = WriteProgress()
        self.many_clients = False
        self._keep_alive = KeepAliveTimer(self, flow)
        self._pong_is_queued = False
        self.number = next(_NUMBERS)
        self.client_version = ""
        self.refusal: str | None = None
        self._limits = LimitedConnection(self, flow.limits, flow.clock)
        self.tells_from_bytes = FIRST_COUNTED_BYTES

    # -- state --------------------------------------------------------------------------------

    @property
    def state(self) -> Enum:
        """The stage of the connection's lifecycle, which determines the legal commands."""
        return self._state

    @state.setter
    def state(self, state: Enum) -> None:
        self._state = state
        if self.handshake_finished:
            self._limits.keeps_first(0)
            self.tells_from_bytes = COUNTED_BYTES
        self._handlers = self._commands.legal_in(state)
        self._frame_handlers = self._commands.frames_in(state)

    @property
    def shown_version(self) -> str:
        """The client's announced version, shortened and in one line for logs."""
        return one_line(self.client_version[:SHOWN_VERSION])

    @property
    def log_fields(self) -> dict[str, object]:
        """The connection's fields in structured log lines."""
        principal = getattr(getattr(self, "session", None), "principal", None)
        return {
            **super().log_fields,
            "connection": self.number,
            **({"client_version": self.shown_version} if self.client_version else {}),
            **({"principal": principal.role} if principal is not None else {}),
        }

    @property
    def handshake_finished(self) -> bool:
        """True once CONNECT has been answered."""
        return self._state not in self._commands.handshake

    # -- lifecycle ----------------------------------------------------------------------------

    def accepted(self) -> None:
        """Count the connection, and start its handshake deadline."""
        self.refusal = self._limits.accepted()

    def connected(self) -> None:
        """Start the keep-alive; refuse the connection if there are too many."""
        self.served = True
        if self._handshakes is not None:
            self._handshakes.finished(self)
        self._keep_alive.start()
        self._flow_parts.slow_peers.connected(self)
        if self.refusal is not None:
            self.end_with(self.refusal)

    def end_with(self, words: str) -> None:
        """Send the client the reason as an error, and close the connection."""
        self.send(error_command(NO_REQUEST, pb.NotAllowedError, words))
        self.close()

    def lost(self, error: Exception | None) -> None:
        """Stop the lost connection's timers, and release its share of all limits."""
        if self._handshakes is not None:
            self._handshakes.lost(self)
        self._limits.lost()
        if self.faults is not None:
            self.faults.lost()
        self._keep_alive.stop()
        if self._flow is not None:
            self._flow.end()
        self._flow_parts.slow_peers.ended(self)

    def reset(self) -> None:
        """Close the connection at once by a TCP reset, so that the kernel frees unsent bytes."""
        self.sender.reset()

    def begin_drain(self) -> None:
        """Ignore the client's further requests, as the server is shutting down."""
        self.take_no_more()

    async def drain(self) -> None:
        """Ignore further requests, then close; subclasses answer requests in flight before."""
        self.take_no_more()
        self.close()

    def becomes_pipe(self) -> None:
        """Become one end of a pipe, which reads only as fast as the far end accepts bytes.

        The pipe's ends exchange keep-alives themselves, and unread bytes must not pause reading
        from the peer: its frames may be a precondition of its reading.
        """
        self.intake.parks = False
        self._keep_alive.stop()
        if self._flow is not None:
            self._flow.stop()
            self._flow = None

    def stands_for_many(self) -> None:
        """Lift the limits on a single client, as the peer announced itself as a proxy.

        A waiting client must not block the rest, so that neither a connection's budget nor the
        cooldown applies; in profile pulsar the cooldown does.
        """
        self.many_clients = True
        self._flow_parts.slow_peers.vouched_for(self)
        if self._rules.spares_proxies:
            self.responses.lift()
            if self._flow is not None:
                self._flow.lift_cooldown()

    # -- receiving ----------------------------------------------------------------------------

    def large_frame_announced(self, total_size: int, head: bytes) -> bool:
        """Refuse an oversized command before its body is buffered.

        Parsing it would block the event loop.
        """
        try:
            if not self.handshake_finished:
                check_first_frame(total_size)
            elif self._rules.bounds_commands:
                check_command_size(command_type_in(head), command_size_in(head))
        except CommandTooLargeError:
            self._flow_parts.totals.oversized_commands += 1
            raise
        return True

    def bytes_kept(self) -> None:
        """Count the buffered bytes of an incomplete frame against the limit of all connections.

        Called after each received chunk until the frame is complete.

        Before CONNECT all kept bytes count, from a smaller size on.
        """
        if not self.handshake_finished:
            kept = self.decoder.buffered_bytes
            counted = kept if kept > FIRST_COUNTED_BYTES else 0
            self.tells_from_bytes = -1 if counted else FIRST_COUNTED_BYTES
            self._limits.keeps_first(counted)
            return
        kept = self.decoder.unfinished_bytes
        counted = kept if kept > COUNTED_BYTES else 0
        self.tells_from_bytes = -1 if counted else COUNTED_BYTES
        self._limits.keeps(self.intake.frames_seen, counted)

    def frame_received(self, frame: Frame) -> None:
        """Process a received frame, unless an injected fault drops or delays it."""
        if self.faults is not None:
            left = self.faults.frame(frame)
            if left is None:
                return
            frame = left
        self.handle_frame(frame)

    def handle_frame(self, frame: Frame) -> None:
        """Pass a frame's command to its handler, and count it against the rate limits.

        The state table is checked before parsing, and again for the parsed type.
        """
        kind = frame.command_type()
        with_payload = self._frame_handlers.get(kind) if kind is not None else None
        if kind is not None and with_payload is not None:
            self._count(kind)
            with_payload(self, frame)
            return
        if kind is not None and kind not in self._handlers:
            self._count(kind)
            self._commands.refuse(self, kind, frame)
            return
        command = self._rules.parse(frame.command_bytes())
        self._count(command.type)
        handler = self._handlers.get(command.type)
        if handler is None:
            self._commands.refuse(self, command.type, frame)
        elif self._limits.too_soon(command.type):
            self.send(self._flow_parts.limits.refusal(command))
        else:
            handler(self, command)

    def _count(self, kind: int) -> None:
        """Count a command against the request rate that applies after a pause.

        The answer to a PING is not counted: it proves that the peer reads.

        A consumer that receives messages as fast as it reads is unwritable for moments all the
        time. Its commands about messages, and messages published on the same connection, have
        separate bounds, and their responses are never larger than requested.
        """
        if kind == _PONG_TYPE:
            if self._keep_alive.pong_was_asked_for():
                self._flow_parts.slow_peers.vouched_for(self)
        elif self._flow is not None and kind not in self._not_counted:
            self._flow.command_received()

    def writability_changed(self, *, writable: bool) -> None:
        """Pause reading while the outbound buffer is full, and resume afterwards."""
        super().writability_changed(writable=writable)
        if self._flow is not None:
            self._flow.writability_changed(writable=writable)

    # -- sending ------------------------------------------------------------------------------

    def _sent(self) -> None:
        self._flow_parts.slow_peers.sent(self)

    def answer_ping(self) -> None:
        """Answer a PING with a PONG, unless a queued PONG answers it already."""
        if self._pong_is_queued and self._rules.answers_pings_once:
            return
        self._pong_is_queued = True
        self.enqueue([_PONG], len(_PONG), self._pong_left)

    def _pong_left(self) -> None:
        self._pong_is_queued = False

    # -- faults -------------------------------------------------------------------------------

    def is_legal(self, kind: int) -> bool:
        """Return True if a command of this type is legal in the connection's present state."""
        return kind in self._handlers or kind in self._frame_handlers

    def topic_of_producer(self, producer_id: int) -> str:
        """Return the full name of a producer's topic; empty if unknown."""
        return ""

    def topic_of_consumer(self, consumer_id: int) -> str:
        """Return the full name of a consumer's topic; empty if unknown."""
        return ""

    def close_producers(self, producer_id: int | None) -> None:
        """Close one producer, or all if given None; a no-op on a server without producers."""

    def close_consumers(self, consumer_id: int | None) -> None:
        """Close one consumer, or all if given None; a no-op on a server without consumers."""

    def move_topic(self, topic: str, to: str | None) -> None:
        """Move a topic to another broker; a no-op on a server without topics."""

    # -- reading and liveness -----------------------------------------------------------------

    @property
    def writable(self) -> bool:
        """True if the outbound buffer accepts more bytes; see limiter.slow_peers.eviction."""
        return self.outbound.writable

    def sample_progress(self, now: float) -> None:
        """Record the peer's number of acknowledged bytes; see limiter.slow_peers.eviction."""
        least_bytes = 1 if self.many_clients else WORTHY_BYTES
        self.progress.sample(
            self.sender.acknowledged_bytes(),
            now,
            outstanding=self.sender.outstanding,
            least_bytes=least_bytes,
        )

    def ask_whether_it_reads(self) -> bool:
        """Send a PING, to learn whether the peer reads.

        Returns False if no PING can be sent, as before CONNECT and in a pipe.
        """
        if not self.handshake_finished or self._flow is None or self.sender.transport is None:
            return False
        self._keep_alive.ping()
        return True

    def close_slow(self, sentence: str) -> None:
        """Close the connection because its peer does not read."""
        logger.warning("closing %s: %s", self.peer, sentence, extra=self.log_fields)
        self.sender.reset()


def ping(cnx: ServedConnection, command: pb.BaseCommand) -> None:
    """Answer a PING with a PONG."""
    with_body(command, "ping")
    cnx.answer_ping()


def pong(_: ServedConnection, command: pb.BaseCommand) -> None:
    """Accept a PONG, which needs no answer."""
    with_body(command, "pong")
