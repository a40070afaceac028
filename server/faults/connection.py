"""Injected faults of a connection, applied to the frames that it receives or sends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from proto.errors import RemoteProtocolError
from proto.frames import LENGTH_FIELD_BYTES, Frame, FrameDecoder
from server.faults.acting import ACTIONS, Acting, Faulty
from server.faults.fault import Direction
from server.faults.holds import Holds, Way

if TYPE_CHECKING:
    from collections.abc import Callable

    import proto.PulsarApi_pb2 as pb
    from limiter.clock import Clock
    from proto.transport.outbound_queue import OutboundEntry
    from proto.transport.sender import Sender
    from proto.transport.writers import Buffer
    from server.faults.registry import FaultRegistry, SetFault

LEAST_PAUSE_SECONDS = 0.001
"""The shortest pause of a slowly read connection."""


class ConnectionFaults:
    """Applies active faults to one direction of a connection: received or sent frames.

    Args:
        registry: The active faults.
        clock: The source of time.
        client: The client's connection.
        way: Stops and resumes receiving or sending.
        direction: Whether the frames are received from, or sent to, the client.
    """

    def __init__(
        self,
        registry: FaultRegistry,
        clock: Clock,
        client: Faulty,
        way: Way,
        direction: Direction = Direction.RECEIVED,
    ) -> None:
        self._registry = registry
        self._clock = clock
        self._direction = direction
        self._client = client
        self.holds = Holds(way, clock)
        self._acting = Acting(client, self.holds, self._slow_down)
        self._slowness: tuple[SetFault, float] | None = None
        self._read_until = 0.0

    @property
    def wanted(self) -> bool:
        """True if frames must be inspected, because an active fault may depend on them."""
        return any(
            (one.fault.direction is self._direction or self._names_topics_of(one))
            and one.selection.may_fit(self._client)
            for one in self._registry
        )

    def _names_topics_of(self, found: SetFault) -> bool:
        """Return True if a fault of sent frames needs the topics that received frames name."""
        return self._direction is Direction.RECEIVED and found.selection.about_topics

    def frame(self, frame: Frame) -> Frame | None:
        """Return the frame to process, possibly changed by a fault; None to drop it."""
        if self.holds.was_delayed(frame):
            return frame
        self._pace(frame)
        if not len(self._registry):
            return frame
        kind = frame.command_type()
        received = self._direction is Direction.RECEIVED
        if kind is None or (received and not self._client.is_legal(kind)):
            return frame
        try:
            return self._with_fault(kind, frame)
        except _UnreadableError:
            return frame

    def _with_fault(self, kind: int, frame: Frame) -> Frame | None:
        for found in self._registry:
            if self._is_due(found, kind, frame):
                action = found.fault.do
                self._registry.count(action.action)
                return ACTIONS[type(action)](self._acting, found, action, frame)
        return frame

    def _is_due(self, found: SetFault, kind: int, frame: Frame) -> bool:
        if found.fault.direction is not self._direction or not found.about(kind):
            return False
        chosen = found.selection
        if not chosen.may_fit(self._client):
            return False
        if chosen.needs_command and not chosen.fits(self._client, _parsed(frame)):
            return False
        due = found.schedule.due()
        if due:
            found.fired()
        return due

    def lost(self) -> None:
        """Discard the delayed frames of a lost connection."""
        self.holds.lost()

    # -- slow reading -------------------------------------------------------------------------

    def _slow_down(self, found: SetFault, bytes_per_second: int) -> None:
        self._slowness = found, bytes_per_second
        self._read_until = self._clock.now()

    def _pace(self, frame: Frame) -> None:
        if self._slowness is None:
            return
        found, rate = self._slowness
        if found.cleared:
            self._slowness = None
            return
        now = self._clock.now()
        self._read_until = max(self._read_until, now) + frame.total_size / rate
        if self._read_until - now >= LEAST_PAUSE_SECONDS:
            self.holds.stop(found, self._read_until - now)


class _UnreadableError(Exception):
    """A command cannot be parsed: no fault applies, and the command's handler reports the error."""


def _parsed(frame: Frame) -> pb.BaseCommand:
    try:
        return frame.command()
    except RemoteProtocolError:
        raise _UnreadableError from None


_NO_LIMIT = 1 << 31


class Served(Faulty, Protocol):
    """An interface with the members of a client's connection that faults of sent frames use."""

    sender: Sender

    def when_lost(self, *told: Callable[[object], object]) -> None:
        """Register callbacks to call when the connection is lost."""


class OutgoingFaults:
    """Applies active faults to the frames that a server itself sends to a client, not to pipes.

    An entry holds whole frames. A delayed frame's memory permits are released with its original
    entry, before the frame leaves.
    """

    can_stop = False

    def __init__(self, registry: FaultRegistry, clock: Clock, cnx: Served) -> None:
        self._sender = cnx.sender
        self._past = False
        self._faults = ConnectionFaults(registry, clock, cnx, self, Direction.SENT)
        cnx.sender.screen = self._screen
        cnx.sender.passes_queue = False  # Frames past the queue are not screened.
        cnx.when_lost(lambda _: self._faults.lost())

    def stop(self) -> None:
        """Do nothing, as sending continues while a frame is delayed."""

    def go_on(self) -> None:
        """Do nothing, as sending was never stopped."""

    def again(self, frame: Frame) -> None:
        """Send a delayed frame, exempt from further faults."""
        self._faults.holds.was_delayed(frame)
        buffers = _buffers(frame)
        self._past = True
        try:
            self._sender.enqueue(buffers, sum(map(len, buffers)))
        finally:
            self._past = False

    def _screen(self, entry: OutboundEntry) -> bool:
        """Apply faults to queued frames; return False if no bytes are left to send now."""
        if self._past or not self._faults.wanted:
            return True
        decoder = FrameDecoder(_NO_LIMIT)
        decoder.feed(b"".join(entry.buffers))
        buffers: list[Buffer] = []
        while (frame := decoder.next_frame()) is not None:
            left = self._faults.frame(frame)
            if left is not None:
                buffers += _buffers(left)
        entry.buffers, entry.size_bytes = buffers, sum(map(len, buffers))
        entry.paid_bytes = min(entry.paid_bytes, entry.size_bytes)
        return bool(buffers)


def _buffers(frame: Frame) -> list[Buffer]:
    return [frame.total_size.to_bytes(LENGTH_FIELD_BYTES, "big"), *frame.parts]
