"""Intake of received frames: each is processed, set aside ("parked"), or left in the socket.

While the connection's read gate is closed, no request is processed. Under profile ``pulsar``
nothing is read either. Otherwise a few frames are parked, so that a control frame behind them can
be processed: frames that break a deadlock (PING, PONG, ACK, FLOW, closing a producer or consumer)
overtake read-only requests (lookups, metadata, topic lists, watches) and no other frames. At the
first parked frame of another kind, or at the bound, the rest stays in the socket.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from proto.frames import Frame

if TYPE_CHECKING:
    from limiter.flow.totals import FlowTotals
    from proto.frames import FrameDecoder

MAX_PARKED_FRAMES = 256
MAX_PARKED_BYTES = 65_536
MAX_ANSWERED_OVERTAKERS = 256
"""Most control frames with a response that may overtake in one pause; then reading stops."""

_Type = pb.BaseCommand
OVERTAKEN = frozenset(
    {_Type.LOOKUP, _Type.PARTITIONED_METADATA, _Type.GET_TOPICS_OF_NAMESPACE}
    | {_Type.WATCH_TOPIC_LIST}
)
"""Requests that later control frames may overtake."""
_ANSWERED = frozenset({_Type.CLOSE_PRODUCER, _Type.CLOSE_CONSUMER})
OVERTAKES = _ANSWERED | {_Type.PING, _Type.PONG, _Type.ACK, _Type.FLOW}
"""Control frames that may overtake requests while handling is paused. WATCH_TOPIC_LIST_CLOSE does
not: its watch may be parked before."""


class FrameIntake:
    """Queue of a connection's received frames, in the order in which they are processed.

    Args:
        decoder: Splits received bytes into frames.
        parks: Whether frames are parked while the gate is closed.
        totals: The process's totals of parked frames.

    Attributes:
        held: Disables parking and overtaking for now, regardless of ``parks``.
    """

    def __init__(
        self, decoder: FrameDecoder, *, parks: bool = False, totals: FlowTotals | None = None
    ) -> None:
        self._decoder = decoder
        self.parks = parks
        self.held = False
        self._totals = totals
        self._parked: deque[Frame] = deque()
        self.parked_bytes = 0
        self._given_back = 0
        self._another_kind = False
        self._answered = 0
        self.frames_seen = 0

    def __len__(self) -> int:
        return len(self._parked)

    @property
    def wants_more(self) -> bool:
        """True if the socket is still to be read although the read gate is closed."""
        waiting = self.parked_bytes + self._decoder.buffered_bytes
        return self._may_park and waiting < MAX_PARKED_BYTES

    @property
    def idle(self) -> bool:
        """True if no received frame is waiting, not even a partial frame."""
        return not self._parked and not self._decoder.buffered_bytes

    @property
    def _may_park(self) -> bool:
        return (
            self.parks
            and not self.held
            and not self._another_kind
            and len(self._parked) < MAX_PARKED_FRAMES
            and self.parked_bytes < MAX_PARKED_BYTES
            and self._answered < MAX_ANSWERED_OVERTAKERS
        )

    def next_frame(self, *, gate_open: bool) -> Frame | None:
        """Return the frame to process next, or None if no frame may be processed now.

        Raises:
            FrameTooLargeError: A length field is above the limit.
        """
        if not gate_open:
            return self._next_overtaking() if self.parks else None
        self._answered = 0
        return self._unpark() if self._parked else self._decode()

    def _next_overtaking(self) -> Frame | None:
        """Park received frames up to the first that may overtake them; return that frame."""
        while self._may_park:
            frame = self._decode()
            if frame is None:
                return None
            kind = frame.command_type()
            if kind in OVERTAKES:
                self._answered += kind in _ANSWERED
                return frame
            self._park(frame, another_kind=kind not in OVERTAKEN)
        return None

    def _decode(self) -> Frame | None:
        frame = self._decoder.next_frame()
        if frame is not None:
            self.frames_seen += 1
        return frame

    def _park(self, frame: Frame, *, another_kind: bool) -> None:
        self._another_kind = another_kind
        # Copied, since its views would keep the whole received chunk.
        self._parked.append(Frame(frame.total_size, (memoryview(frame.body()),)))
        self._change(1, frame.total_size)

    def _unpark(self) -> Frame:
        frame = self._parked.popleft()
        self._given_back = max(0, self._given_back - 1)
        self._another_kind = self._another_kind and bool(self._parked)
        self._change(-1, -frame.total_size)
        return frame

    def give_back(self, frame: Frame) -> None:
        """Put a frame back at the front of the queue, after frames put back earlier."""
        self._parked.insert(self._given_back, frame)
        self._given_back += 1
        self._change(1, frame.total_size)

    def discard(self) -> None:
        """Drop all parked frames of a closed connection."""
        self._change(-len(self._parked), -self.parked_bytes)
        self._parked.clear()
        self._given_back = 0

    def _change(self, frames: int, size_bytes: int) -> None:
        self.parked_bytes += size_bytes
        if self._totals is not None:
            self._totals.parked_frames += frames
            self._totals.parked_bytes += size_bytes
