"""Delays caused by injected faults: single frames wait, or a connection is not read.

A delay ends after its time or when its fault is cleared, whichever is first, and is dropped when
the connection is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from limiter.flow.causes import PauseCause

if TYPE_CHECKING:
    from collections.abc import Callable

    from limiter.clock import Clock, TimerHandle
    from limiter.flow.read_gate import ReadGate
    from proto.frames import Frame
    from proto.transport.frame_intake import FrameIntake
    from server.faults.registry import SetFault

MAX_HELD_FRAMES = 256
"""Frames of a direction that may wait while later frames go on; at the bound later frames wait
too, or, if impossible, nothing is delayed."""
MAX_HELD_BYTES = 1 << 20


class Way(Protocol):
    """An interface of one direction of a connection, received or sent, that faults can delay.

    Attributes:
        can_stop: True if later frames can be made to wait.
    """

    can_stop: bool

    def stop(self) -> None:
        """Make all later frames of this direction wait."""

    def go_on(self) -> None:
        """Let the frames that wait continue."""

    def again(self, frame: Frame) -> None:
        """Process a frame whose delay is over."""


class Reader(Protocol):
    """An interface with the members of a connection that delays of received frames use."""

    gate: ReadGate
    intake: FrameIntake

    def take_again(self, frame: Frame) -> None:
        """Process a delayed frame next, in an event-loop iteration of its own."""


class Incoming:
    """The direction of a connection with its received frames, which faults can delay."""

    can_stop = True

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.again = reader.take_again

    def stop(self) -> None:
        """Stop reading, so that later frames do not overtake a delayed frame."""
        self._reader.intake.held = True
        self._reader.gate.close_for(PauseCause.FAULT)

    def go_on(self) -> None:
        """Resume reading from the client."""
        self._reader.intake.held = False
        self._reader.gate.open_for(PauseCause.FAULT)


class _Hold:
    """A delay caused by a fault, of a single frame or of all reading."""

    def __init__(self, found: SetFault, ended: Callable[[_Hold], object]) -> None:
        self._found = found
        self._ended = ended
        self.timer: TimerHandle | None = None
        found.when_cleared(self.end)

    def end(self) -> None:
        self.drop()
        self._ended(self)

    def drop(self) -> None:
        self._found.forget(self.end)
        if self.timer is not None:
            self.timer.cancel()


class Holds:
    """All present delays of one direction of a connection: of received or of sent frames.

    Attributes:
        frames: Number of delayed frames.
        size_bytes: Size of the delayed frames.
    """

    def __init__(self, way: Way, clock: Clock) -> None:
        self._way = way
        self._clock = clock
        self._all: set[_Hold] = set()
        self._stops = 0
        self.frames = 0
        self.size_bytes = 0
        self._delayed: list[Frame] = []

    def __bool__(self) -> bool:
        return bool(self._all or self._delayed)

    @property
    def full(self) -> bool:
        """True if so many frames are delayed that one more would have to stop all later frames."""
        return self.frames >= MAX_HELD_FRAMES or self.size_bytes >= MAX_HELD_BYTES

    def stop(self, found: SetFault, seconds: float | None) -> None:
        """Stop reading for a number of seconds or, if given None, until the fault is cleared."""
        self._close()
        self._add(found, seconds, self._open)

    def delay(self, found: SetFault, frame: Frame, seconds: float, *, in_order: bool) -> None:
        """Delay a frame for ``seconds``; if ``in_order``, all later frames wait, too."""
        if self.full and not self._way.can_stop:
            self._way.again(frame)
            return
        size = frame.total_size
        in_order = in_order or self.full
        self.frames += 1
        self.size_bytes += size
        if in_order:
            self._close()

        def go_on() -> None:
            self.frames -= 1
            self.size_bytes -= size
            self._delayed.append(frame)
            self._way.again(frame)
            if in_order:
                self._open()

        self._add(found, seconds, go_on)

    def was_delayed(self, frame: Frame) -> bool:
        """Return True if the frame's delay has just ended, so that faults must not delay it again.

        True only once for each delay.
        """
        for index, one in enumerate(self._delayed):
            if one is frame:
                del self._delayed[index]
                return True
        return False

    def lost(self) -> None:
        """Discard all delayed frames of a lost connection."""
        gone, self._all = self._all, set()
        for hold in gone:
            hold.drop()
        self._delayed.clear()
        self.frames = self.size_bytes = 0

    def _add(self, found: SetFault, seconds: float | None, go_on: Callable[[], object]) -> None:
        def ended(hold: _Hold) -> None:
            self._all.discard(hold)
            go_on()

        hold = _Hold(found, ended)
        self._all.add(hold)
        if seconds is not None:
            hold.timer = self._clock.call_at(self._clock.now() + seconds, hold.end)

    def _close(self) -> None:
        self._stops += 1
        if self._stops == 1:
            self._way.stop()

    def _open(self) -> None:
        self._stops -= 1
        if not self._stops:
            self._way.go_on()
