"""A client's end of a simulated connection: frames as they arrive, at the speed it reads.

Nothing is copied and little is looked at: where frames begin and end is seen when they are sent,
and when they have been read whole the client is handed their pieces.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadgen.engine.answers import AnswerBody
    from loadgen.virtual.links.pipe import Pipe
    from loadgen.virtual.links.reading import Reader
    from loadgen.virtual.loop import VirtualLoop

    Buffer = bytes | memoryview

_LENGTH_BYTES = 4


class ReceivedFrame:
    """A frame: its place in the stream, and its pieces.

    Attributes:
        body: Where a listing's bytes go that stand behind ``offset``; None for other frames.
    """

    __slots__ = ("begun", "body", "end", "offset", "pieces", "request_id", "start")

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end
        self.begun = False
        self.pieces: list[Buffer] = []
        self.body: AnswerBody | None = None
        self.request_id = self.offset = 0

    @property
    def size_bytes(self) -> int:
        """Its length, with the length field."""
        return self.end - self.start


class Client(Protocol):
    """A client, as its connection knows it."""

    def connected(self) -> None:
        """Learn that the connection stands; nothing was said yet."""

    def frame_begins(self, frame: ReceivedFrame) -> None:
        """Learn that the first byte of a frame was read."""

    def frame_received(self, frame: ReceivedFrame) -> None:
        """Take a frame that was read whole."""

    def disconnected(self, error: Exception | None) -> None:
        """Learn that the server has closed the connection, or with an error reset it."""


class ClientEnd:
    """A client's end, and the sink of what is sent to it.

    Attributes:
        reader: Says how fast it reads.
    """

    __slots__ = (
        "_client", "_due", "_frame", "_frames", "_gone", "_head", "_loop", "_scanned",
        "_server_ended", "incoming", "out", "reader",
    )  # fmt: skip

    def __init__(self, loop: VirtualLoop, client: Client, reader: Reader) -> None:
        self.reader = reader
        self.out: Pipe
        self.incoming: Pipe
        self._loop = loop
        self._client = client
        self._frames: deque[ReceivedFrame] = deque()
        self._frame: ReceivedFrame | None = None
        self._head = b""
        self._scanned = 0
        self._due = -1.0
        self._server_ended = self._gone = False

    def send(self, *frames: bytes) -> None:
        """Send frames at once."""
        if not self._gone:
            self.out.send(frames, sum(map(len, frames)))

    def close(self) -> None:
        """Close at once: a reset if there is something that was not read."""
        if not self._gone:
            self._gone = True
            self.arriving()
            unread = self.incoming.visible > self.incoming.read
            self._frames.clear()
            self.out.end(reset=unread)

    def read_by(self, reader: Reader) -> None:
        """Read at another speed from now on."""
        self.arriving()
        self.reader = reader
        self.arrived()

    # -- the sink of ``incoming`` -------------------------------------------------------------

    def sent(self, buffers: Sequence[Buffer]) -> None:
        """See where frames begin and end."""
        if self._gone:
            return
        for buffer in buffers:
            self._scan(buffer)

    def _scan(self, buffer: Buffer) -> None:
        if self._head:
            buffer, self._head = self._head + bytes(buffer), b""
        while size := len(buffer):
            frame = self._frame
            if frame is None:
                if size < _LENGTH_BYTES:
                    self._head = bytes(buffer)
                    return
                end = self._scanned + _LENGTH_BYTES + int.from_bytes(buffer[:_LENGTH_BYTES], "big")
                self._frame = frame = ReceivedFrame(self._scanned, end)
                self._frames.append(frame)
            left = frame.end - self._scanned
            if size < left:
                frame.pieces.append(buffer)
                self._scanned += size
                return
            frame.pieces.append(buffer if size == left else memoryview(buffer)[:left])
            self._scanned += left
            self._frame = None
            if size == left:
                return
            buffer = memoryview(buffer)[left:]

    def arriving(self) -> None:
        """Read what was visible until now, as far as its speed allows."""
        incoming = self.incoming
        read = self.reader.read_by(self._loop._now, incoming.read, incoming.visible)
        if read > incoming.read:
            incoming.was_read(read)

    def arrived(self) -> None:
        """Read, hand over what is whole, and wait for the next moment that matters."""
        if self._gone:
            # The kernel drops what comes for a socket that was closed.
            return
        self.arriving()
        self._hand_over()
        if self._gone:
            return
        incoming = self.incoming
        wanted = self._wanted()
        if wanted > incoming.read:
            when = self.reader.moment_of(wanted, self._loop._now, incoming.read, incoming.visible)
            if when is not None and when != self._due:
                self._due = when
                self._loop.after(when, self._is_due, when)
        elif self._server_ended and incoming.read == incoming.taken:
            self._over(None)

    def _wanted(self) -> int:
        """Return what must have been read for something to happen; 0 for nothing."""
        incoming, wanted = self.incoming, 0
        if self._frames:
            first = self._frames[0]
            wanted = first.end if first.begun else first.start + 1
        if self._server_ended:
            wanted = min(wanted or incoming.taken, incoming.taken)
        if incoming.shut and incoming.read < incoming.opens_at < (wanted or incoming.taken):
            wanted = incoming.opens_at
        return wanted

    def _is_due(self, when: float) -> None:
        if when == self._due:
            self._due = -1.0
            self.arrived()

    def _hand_over(self) -> None:
        read = self.incoming.read
        while self._frames and not self._gone:
            frame = self._frames[0]
            if not frame.begun and frame.start < read:
                frame.begun = True
                self._client.frame_begins(frame)
            if frame.end > read:
                return
            self._frames.popleft()
            self._client.frame_received(frame)

    def ended(self, *, reset: bool) -> None:
        """Learn that the server has ended the connection."""
        if self._gone:
            return
        self._server_ended = True
        if reset:
            self._over(ConnectionResetError(104, "Connection reset by peer"))
        else:
            self.arrived()

    def _over(self, error: Exception | None) -> None:
        if not self._gone:
            self._gone = True
            self._client.disconnected(error)
