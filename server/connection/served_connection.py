"""A client's connection to broker or proxy: commands by a table, flow control, keep-alive, an end.

Whatever the peer does or leaves undone, what its
connection holds comes back: it reads slowly and is paused, it reads nothing and is closed, it
vanishes and is noticed.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from limiter.flow.causes import CloseReason
from limiter.flow.flow_control import FlowControl, FlowRules
from limiter.flow.response_budget import ResponseBudget
from limiter.slow_peers.write_progress import WORTHY_BYTES, WriteProgress
from proto.command_bounds import check_command_size, check_first_frame
from proto.errors import CommandTooLargeError
from proto.frames import command_size_in, command_type_in, encode_command
from proto.transport.connection import Connection
from proto.transport.keep_alive import CLOSING, KeepAlive, PeerState, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from enum import Enum

    from limiter.clock import Clock, TimerHandle
    from limiter.flow.totals import FlowTotals
    from limiter.slow_peers.eviction import SlowPeers
    from proto.frames import Frame
    from proto.transport.process_flow import ProcessFlow
    from server.connection.command_table import CommandTable

    Buffer = bytes | memoryview

logger = logging.getLogger(__name__)

_PING = encode_command(pb.BaseCommand(type=pb.BaseCommand.PING, ping=pb.CommandPing()))
_PONG = encode_command(pb.BaseCommand(type=pb.BaseCommand.PONG, pong=pb.CommandPong()))
_PING_TYPE, _PONG_TYPE = pb.BaseCommand.PING, pb.BaseCommand.PONG


@dataclass(slots=True)
class FlowParts:
    """The parts of flow control that all connections of a process share.

    Attributes:
        rules: Those of connections that come; the marks of the others follow (see
            ServerService.change_water_marks).
        as_shipped: Profile pulsar.
    """

    clock: Clock
    rules: FlowRules
    keep_alive_seconds: float
    as_shipped: bool
    process: ProcessFlow
    totals: FlowTotals
    slow_peers: SlowPeers


class ServedConnection(Connection):
    """One client.

    Args:
        flow: What its process gives it.
        commands: The commands that are served.
        max_message_bytes: Largest message.

    Attributes:
        progress: What is known of how it reads.
        many_clients: It announced that it is a proxy.
        responses: Bytes of answers that are being made for it.
    """

    def __init__(self, flow: FlowParts, commands: CommandTable, max_message_bytes: int) -> None:
        super().__init__(max_message_bytes, flow.rules.marks, flow.process)
        self._commands = commands
        self.state = commands.handshake[0]
        self._flow_parts = flow
        if flow.as_shipped:
            self.passes_queue = False  # There every mark is Netty's, and its queue's.
        self._flow: FlowControl | None = FlowControl(flow.rules, self.gate, flow.clock)
        self.responses = ResponseBudget(flow.rules.max_response_bytes, self.gate, flow.totals)
        self.progress = WriteProgress()
        self.many_clients = False
        self._keep_alive = KeepAlive(by_progress=not flow.as_shipped)
        self._keep_alive_timer: TimerHandle | None = None
        self._pong_is_queued = False
        self._pings_unanswered = 0

    # -- state --------------------------------------------------------------------------------

    @property
    def state(self) -> Enum:
        """The stage of the connection's life, which says what commands are legal."""
        return self._state

    @state.setter
    def state(self, state: Enum) -> None:
        self._state = state
        self._handlers = self._commands.legal_in(state)

    @property
    def ready(self) -> bool:
        """True if the handshake is finished."""
        return self._state not in self._commands.handshake

    # -- life ---------------------------------------------------------------------------------

    def connected(self) -> None:
        """Begin to ask whether the peer lives."""
        self._arm_keep_alive()
        self._flow_parts.slow_peers.connected(self)

    def lost(self, error: Exception | None) -> None:
        """No timer and no watch is left."""
        self._stop_keep_alive()
        if self._flow is not None:
            self._flow.end()
        self._flow_parts.slow_peers.ended(self)

    async def drain(self) -> None:
        """Take no more requests, then close; subclasses first let those under way answer."""
        self.take_no_more()
        self.close()

    def becomes_pipe(self) -> None:
        """From now on only the other side of a pipe says when this one is read.

        Its keep-alive is between both ends of the pipe, and what it does not read must not stop
        what it sends: that could be what makes it read.
        """
        self.intake.parks = False
        self._stop_keep_alive()
        if self._flow is not None:
            self._flow.stop()
            self._flow = None

    def stands_for_many(self) -> None:
        """The peer announced that it is a proxy: its haste is that of many clients.

        What one of them waits for must not hold up the others, so that neither the budget of one
        connection nor the cooldown applies; as shipped the cooldown does.
        """
        self.many_clients = True
        self._flow_parts.slow_peers.vouched_for(self)
        if not self._flow_parts.as_shipped:
            self.responses.lift()
            if self._flow is not None:
                self._flow.lift_cooldown()

    # -- receiving ----------------------------------------------------------------------------

    def large_frame_announced(self, total_size: int, head: bytes) -> bool:
        """Refuse what would hold the event loop, before its body is buffered.

        As shipped a command may be as large as a frame once CONNECT was answered.
        """
        try:
            if not self.ready:
                check_first_frame(total_size)
            elif not self._flow_parts.as_shipped:
                check_command_size(command_type_in(head), command_size_in(head))
        except CommandTooLargeError:
            self._flow_parts.totals.oversized_commands += 1
            raise
        return True

    def frame_received(self, frame: Frame) -> None:
        """Count a command against the cooldown, then handle it.

        The state table is asked before anything is parsed, and again for the type that was.
        """
        kind = frame.command_type()
        if kind is not None and kind not in self._handlers:
            self._count(kind)
            self._commands.refuse(self, kind, frame)
            return
        command = frame.command(as_shipped=self._flow_parts.as_shipped)
        self._count(command.type)
        handler = self._handlers.get(command.type)
        if handler is None:
            self._commands.refuse(self, command.type, frame)
        else:
            handler(self, command)

    def _count(self, kind: int) -> None:
        """Count a command against the cooldown; who answers a PING reads."""
        if kind == _PONG_TYPE:
            if self._pings_unanswered:  # One that nobody asked for says nothing.
                self._pings_unanswered -= 1
                self._flow_parts.slow_peers.vouched_for(self)
        elif self._flow is not None and kind != _PING_TYPE:
            self._flow.command_received()

    def writability_changed(self, *, writable: bool) -> None:
        """Pause or resume reading, if that is configured."""
        super().writability_changed(writable=writable)
        if self._flow is not None:
            self._flow.writability_changed(writable=writable)

    # -- sending ------------------------------------------------------------------------------

    def enqueue(
        self,
        buffers: Sequence[Buffer],
        size_bytes: int,
        on_left: Callable[[], object] | None = None,
        paid_bytes: int = 0,
    ) -> None:
        """See Connection.enqueue; from now on it matters whether the peer reads."""
        super().enqueue(buffers, size_bytes, on_left, paid_bytes)
        if self.transport is not None:
            self._flow_parts.slow_peers.sent(self)

    def write_through(
        self,
        frame: bytes | Sequence[Buffer],
        part: Callable[[], Callable[[], object]],
        paid_bytes: int,
    ) -> bool:
        """See Sending.write_through; from now on it matters whether the peer reads."""
        if not super().write_through(frame, part, paid_bytes):
            return False
        self._flow_parts.slow_peers.sent(self)
        return True

    def answer_ping(self) -> None:
        """Send a PONG; one that has not left yet answers every PING until it does.

        As shipped each gets its own, also from a peer that reads none of them.
        """
        if self._pong_is_queued and not self._flow_parts.as_shipped:
            return
        self._pong_is_queued = True
        self.enqueue([_PONG], len(_PONG), self._pong_left)

    def _pong_left(self) -> None:
        self._pong_is_queued = False

    # -- whether it reads, whether it lives ---------------------------------------------------

    @property
    def writable(self) -> bool:
        """True if its outbound buffer is writable; see limiter.slow_peers.eviction."""
        return self.outbound.writable

    def sample_progress(self, now: float) -> None:
        """Ask the kernel what the peer has acknowledged; see limiter.slow_peers.eviction."""
        least_bytes = 1 if self.many_clients else WORTHY_BYTES
        self.progress.sample(
            self.acknowledged_bytes(), now, outstanding=self.outstanding, least_bytes=least_bytes
        )

    def ask_whether_it_reads(self) -> bool:
        """Send a PING, whose answer says so; false before the handshake, and of a pipe."""
        if not self.ready or self._flow is None or self.transport is None:
            return False
        self._ping()
        return True

    def _ping(self) -> None:
        self._pings_unanswered += 1
        self.enqueue([_PING], len(_PING))

    def close_slow(self, sentence: str) -> None:
        """End the connection of a peer that does not read."""
        logger.warning("closing %s: %s", self.peer, sentence)
        self.reset()

    def _arm_keep_alive(self) -> None:
        parts = self._flow_parts
        if parts.keep_alive_seconds > 0:
            due = parts.clock.now() + parts.keep_alive_seconds
            self._keep_alive_timer = parts.clock.call_at(due, self._keep_alive_tick)

    def _stop_keep_alive(self) -> None:
        if self._keep_alive_timer is not None:
            self._keep_alive_timer.cancel()
            self._keep_alive_timer = None

    def _keep_alive_tick(self) -> None:
        """Judge the peer by what came from it, and ask again."""
        self._arm_keep_alive()
        outstanding = self.outstanding
        verdict = self._keep_alive.tick(
            PeerState(
                self.ready,
                self.paused,
                self.intake.frames_seen,
                self.acknowledged_bytes() if outstanding else self.written_bytes,
                outstanding,
            )
        )
        if verdict is Verdict.SEND_PING:
            self._ping()
        elif verdict in CLOSING:
            self._close_as_dead(verdict)

    def _close_as_dead(self, verdict: Verdict) -> None:
        seconds = self._flow_parts.keep_alive_seconds
        if verdict is Verdict.CLOSE_STUCK:
            self._flow_parts.totals.closed[CloseReason.KEEP_ALIVE] += 1
        logger.info("closing %s: %s (%g s)", self.peer, verdict.value, seconds)
        if self._flow_parts.as_shipped:
            self.abort()
        else:
            self.reset()
