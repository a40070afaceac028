"""A client's connection to broker or proxy: dispatch, flow control, keep-alive and end.

Whatever the peer does or leaves undone, what its connection holds comes back: it reads slowly and
is paused, it reads nothing and is closed, it vanishes and is noticed.
"""

from __future__ import annotations

import logging
from itertools import count
from typing import TYPE_CHECKING, Protocol

import proto.PulsarApi_pb2 as pb
from limiter.flow.flow_control import FlowControl
from limiter.flow.response_budget import ResponseBudget
from limiter.slow_peers.write_progress import WORTHY_BYTES, WriteProgress
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
"""Characters of a client's version that are shown."""
_PONG = encode_command(pb.BaseCommand(type=pb.BaseCommand.PONG, pong=pb.CommandPong()))
_PING_TYPE, _PONG_TYPE = pb.BaseCommand.PING, pb.BaseCommand.PONG
_NOT_COUNTED = (_PING_TYPE, pb.BaseCommand.SEND, pb.BaseCommand.ACK, pb.BaseCommand.FLOW)


class FrameFaults(Protocol):
    """The faults of one connection; see server.faults."""

    def frame(self, frame: Frame) -> Frame | None:
        """Return the frame that is to be handled now, which may be another one; None: none."""

    def lost(self) -> None:
        """Drop what is held up: the connection is gone."""


class ServedConnection(Connection):
    """A connection to one client.

    Attributes:
        progress: How it has read so far.
        many_clients: It announced that it is a proxy.
        served: It is a client's: with TLS from the end of its handshake.
        number: Its own, in this process.
        refusal: The words of its refusal, if it was one connection too many.
        responses: Bytes of answers that are being made for it.
        client_version: As the client calls itself; empty before CONNECT.
        faults: Those that may be set on command; None without floodgateFaultsEnabled.
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
        """The stage of the connection's life, which says what commands are legal."""
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
        """The client's name for itself, cut and in one line."""
        return one_line(self.client_version[:SHOWN_VERSION])

    @property
    def log_fields(self) -> dict[str, object]:
        """The fields of a structured log line about the connection, beside its sentence."""
        principal = getattr(getattr(self, "session", None), "principal", None)
        return {
            **super().log_fields,
            "connection": self.number,
            **({"client_version": self.shown_version} if self.client_version else {}),
            **({"principal": principal.role} if principal is not None else {}),
        }

    @property
    def handshake_finished(self) -> bool:
        """True if the handshake is finished."""
        return self._state not in self._commands.handshake

    # -- life ---------------------------------------------------------------------------------

    def accepted(self) -> None:
        """Count it, and give it time to say who it is."""
        self.refusal = self._limits.accepted()

    def connected(self) -> None:
        """Begin to ask whether the peer lives; one connection too many is refused."""
        self.served = True
        if self._handshakes is not None:
            self._handshakes.finished(self)
        self._keep_alive.start()
        self._flow_parts.slow_peers.connected(self)
        if self.refusal is not None:
            self.end_with(self.refusal)

    def end_with(self, words: str) -> None:
        """Tell a client why its connection is not allowed, and close it."""
        self.send(error_command(NO_REQUEST, pb.NotAllowedError, words))
        self.close()

    def lost(self, error: Exception | None) -> None:
        """Stop the timers, and leave flow control and the watch for slow peers."""
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
        """Close it, so that the kernel keeps nothing of what was not sent."""
        self.sender.reset()

    def begin_drain(self) -> None:
        """Take no more requests: the server drains."""
        self.take_no_more()

    async def drain(self) -> None:
        """Take no more requests, then close; subclasses first let those under way answer."""
        self.take_no_more()
        self.close()

    def becomes_pipe(self) -> None:
        """Let the other side of a pipe alone say when this one is read, from now on.

        Its keep-alive is between both ends of the pipe, and what it does not read must not stop
        what it sends: that could be what makes it read.
        """
        self.intake.parks = False
        self._keep_alive.stop()
        if self._flow is not None:
            self._flow.stop()
            self._flow = None

    def stands_for_many(self) -> None:
        """Treat the peer as many clients: it announced that it is a proxy.

        What one of them waits for must not hold up the others, so that neither the budget of one
        connection nor the cooldown applies; in profile pulsar the cooldown does.
        """
        self.many_clients = True
        self._flow_parts.slow_peers.vouched_for(self)
        if self._rules.spares_proxies:
            self.responses.lift()
            if self._flow is not None:
                self._flow.lift_cooldown()

    # -- receiving ----------------------------------------------------------------------------

    def large_frame_announced(self, total_size: int, head: bytes) -> bool:
        """Refuse a command that would hold the event loop, before its body is buffered."""
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
        """Count what is kept of an unfinished frame, after each chunk until it ends.

        Before CONNECT all that is kept counts, and less of it.
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
        """Handle a frame, unless a fault that is set keeps it from that."""
        if self.faults is not None:
            left = self.faults.frame(frame)
            if left is None:
                return
            frame = left
        self.handle_frame(frame)

    def handle_frame(self, frame: Frame) -> None:
        """Count a command against the cooldown, then handle it.

        The state table is asked before anything is parsed, and again for the type that was.
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
        """Count a command against the cooldown; a peer that answers a PING reads.

        A consumer that is sent messages as fast as it reads is unwritable for a moment all the
        time. Its commands about messages, and what is published beside it, have bounds of their
        own, and are not answered with more than was asked.
        """
        if kind == _PONG_TYPE:
            if self._keep_alive.pong_was_asked_for():
                self._flow_parts.slow_peers.vouched_for(self)
        elif self._flow is not None and kind not in self._not_counted:
            self._flow.command_received()

    def writability_changed(self, *, writable: bool) -> None:
        """Pause or resume reading, if that is configured."""
        super().writability_changed(writable=writable)
        if self._flow is not None:
            self._flow.writability_changed(writable=writable)

    # -- sending ------------------------------------------------------------------------------

    def _sent(self) -> None:
        self._flow_parts.slow_peers.sent(self)

    def answer_ping(self) -> None:
        """Send a PONG."""
        if self._pong_is_queued and self._rules.answers_pings_once:
            return
        self._pong_is_queued = True
        self.enqueue([_PONG], len(_PONG), self._pong_left)

    def _pong_left(self) -> None:
        self._pong_is_queued = False

    # -- faults -------------------------------------------------------------------------------

    def is_legal(self, kind: int) -> bool:
        """Return True if a command of this type may come now."""
        return kind in self._handlers or kind in self._frame_handlers

    def topic_of_producer(self, producer_id: int) -> str:
        """Return the full name of a producer's topic; empty if it is not known."""
        return ""

    def topic_of_consumer(self, consumer_id: int) -> str:
        """Return the full name of a consumer's topic; empty if it is not known."""
        return ""

    def close_producers(self, producer_id: int | None) -> None:
        """Have a producer closed as by the server; None: all. Here it has none."""

    def close_consumers(self, consumer_id: int | None) -> None:
        """Have a consumer closed as by the server; None: all. Here it has none."""

    def move_topic(self, topic: str, to: str | None) -> None:
        """Let another broker serve a topic, where this server serves any."""

    # -- whether it reads, whether it lives ---------------------------------------------------

    @property
    def writable(self) -> bool:
        """True if its outbound buffer is writable; see limiter.slow_peers.eviction."""
        return self.outbound.writable

    def sample_progress(self, now: float) -> None:
        """Ask the kernel what the peer has acknowledged; see limiter.slow_peers.eviction."""
        least_bytes = 1 if self.many_clients else WORTHY_BYTES
        self.progress.sample(
            self.sender.acknowledged_bytes(),
            now,
            outstanding=self.sender.outstanding,
            least_bytes=least_bytes,
        )

    def ask_whether_it_reads(self) -> bool:
        """Send a PING, whose answer proves it; false before the handshake, and for a pipe."""
        if not self.handshake_finished or self._flow is None or self.sender.transport is None:
            return False
        self._keep_alive.ping()
        return True

    def close_slow(self, sentence: str) -> None:
        """End the connection of a peer that does not read."""
        logger.warning("closing %s: %s", self.peer, sentence, extra=self.log_fields)
        self.sender.reset()


def ping(cnx: ServedConnection, command: pb.BaseCommand) -> None:
    """Answer PING."""
    with_body(command, "ping")
    cnx.answer_ping()


def pong(_: ServedConnection, command: pb.BaseCommand) -> None:
    """Take a PONG: that the peer lives was clear when its frame came."""
    with_body(command, "pong")
