"""One direction of a simulated connection: from a sender's memory to a reader, in counted bytes.

Bytes are counted, never copied: what is sent goes to the sink by reference, once, and the pipe says
how much of it is where. The counts only grow, in this order: sent, taken (by the sender's kernel),
moved (to the receiver's), visible (arrived there), read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from loadgen.virtual.links.kernel import ACKNOWLEDGE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadgen.virtual.links.kernel import KernelBuffers
    from loadgen.virtual.loop import VirtualLoop
    from loadgen.virtual.processor import Processor

    Buffer = bytes | memoryview


class Sink(Protocol):
    """The receiving end of a pipe."""

    def sent(self, buffers: Sequence[Buffer]) -> None:
        """Take over what is sent, before any of it may be read."""

    def arriving(self) -> None:
        """Read what may have been read by now: more becomes visible next."""

    def arrived(self) -> None:
        """Go on: more is visible."""

    def ended(self, *, reset: bool) -> None:
        """Learn that nothing more is sent; after a reset nothing more is read either."""


class Pipe:
    """One direction.

    Args:
        processor: The sending process's; None for a client, whose work takes no time.
        writable: Called when a sender of whom not everything was taken may go on.

    Attributes:
        shut: The receiver's window is closed.
    """

    __slots__ = (
        "_announced", "_ended", "_free_at", "_loop", "_opening", "_processor", "_writable",
        "buffers", "moved", "read", "sent", "shut", "sink", "taken", "visible",
    )  # fmt: skip

    def __init__(
        self,
        loop: VirtualLoop,
        buffers: KernelBuffers,
        processor: Processor | None,
        writable: Callable[[], object],
    ) -> None:
        self.buffers = buffers
        self.sink: Sink
        self.sent = self.taken = self.moved = self.visible = self.read = 0
        self.shut = False
        self._announced = 0
        self._loop = loop
        self._processor = processor
        self._writable = writable
        self._free_at = 0.0
        self._opening = self._ended = False

    @property
    def unsent(self) -> int:
        """Bytes that the sender's kernel has not taken."""
        return self.sent - self.taken

    @property
    def unacknowledged(self) -> int:
        """Bytes in the sender's kernel."""
        return self.taken - self.moved

    # -- the sender ---------------------------------------------------------------------------

    def send(self, buffers: Sequence[Buffer], size: int) -> None:
        """Send; what the kernel does not take at once waits for ``go_on``."""
        self.sink.sent(buffers)
        self.sent += size
        self.go_on()

    def go_on(self) -> None:
        """Let the kernel take what it has room for."""
        before = self.taken
        while (left := self.sent - self.taken) > 0:
            taking = min(left, self.buffers.send_bytes - self.taken + self.moved)
            if taking <= 0:
                break
            self.taken += taking
            self._move()
        if self._processor is not None and self.taken > before:
            self._processor.charge((self.taken - before) * self._processor.times.write_byte)
        self._announce()

    def forget_unsent(self) -> None:
        """Send no more of what the kernel has not taken."""
        self.sent = self.taken

    def end(self, *, reset: bool = False) -> None:
        """Say that nothing more comes: behind what was taken, or at once by a reset."""
        if not self._ended:
            self._ended = True
            self._loop.after(self._left_at() + self.buffers.latency_seconds, self._end, reset)

    def _end(self, reset: bool) -> None:
        self.sink.ended(reset=reset)

    # -- from kernel to kernel ----------------------------------------------------------------

    def _move(self) -> None:
        """Move what the receiver has room for."""
        if self.shut:
            return
        room = self.buffers.receive_bytes - self.moved + self.read
        waiting = self.taken - self.moved
        self.moved += min(waiting, room)
        self.shut = waiting >= room

    def _announce(self) -> None:
        """Let what was moved become visible a latency later, or when the link had time for it."""
        moved = self.moved - self._announced
        if not moved:
            return
        self._announced = self.moved
        leaves, buffers = self._left_at(), self.buffers
        if buffers.bytes_per_second:
            self._free_at = max(self._free_at, leaves) + moved / buffers.bytes_per_second
            leaves = self._free_at
        self._loop.after(leaves + buffers.latency_seconds, self._arrive, self.moved)

    def _left_at(self) -> float:
        return self._loop.time() if self._processor is None else self._processor.done_at

    def _arrive(self, visible: int) -> None:
        self.sink.arriving()
        self.visible = visible
        self.sink.arrived()

    # -- the receiver -------------------------------------------------------------------------

    def was_read(self, offset: int) -> None:
        """Count all up to an offset as read, which may open the window again."""
        self.read = offset
        if self.shut and not self._opening and offset >= self.opens_at:
            self._opening = True
            delay = ACKNOWLEDGE_SECONDS if offset < self.visible else self.buffers.latency_seconds
            self._loop.after(self._loop.time() + delay, self._open)

    @property
    def opens_at(self) -> int:
        """What must have been read before a closed window opens."""
        buffers = self.buffers
        return self.moved - buffers.receive_bytes + buffers.window_bytes

    def _open(self) -> None:
        self._opening = self.shut = False
        self._move()
        self._announce()
        if self.sent > self.taken and self.unacknowledged <= self.buffers.writable_bytes:
            self._writable()
