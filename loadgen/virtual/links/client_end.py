"""A client's end of a simulated connection: the code of the client is that of a real run.

The client is handed whole frames instead of bytes, when its reader will have read them. Nothing is
copied and little is looked at: where frames begin and end is seen when they are sent.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from loadgen.engine.answer_stream import Listing
from loadgen.engine.pacing import NEVER, UNLIMITED, Paced
from proto.frames import HEAD_BYTES
from proto.parsing.parser import parse_command
from proto.topics_response import read_topics_head

if TYPE_CHECKING:
    from collections.abc import Sequence

    import proto.PulsarApi_pb2 as pb
    from loadgen.engine.answers import AnswerBody
    from loadgen.engine.connection import LoadConnection
    from loadgen.engine.pacing import Reader
    from loadgen.virtual.links.pipe import Pipe
    from loadgen.virtual.loop import VirtualLoop

    Buffer = bytes | memoryview

_LENGTH_BYTES = 4
_HEADER_BYTES = 8
_MOST_PARSED = 10_000


class ReceivedFrame:
    """A frame: its place in the stream, and its pieces.

    Attributes:
        body: Takes a listing's bytes behind ``offset``; None for other frames.
    """

    __slots__ = ("begun", "body", "end", "offset", "pieces", "request_id", "start")

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end
        self.begun = False
        self.pieces: list[Buffer] = []
        self.body: AnswerBody | None = None
        self.request_id = self.offset = 0


class ClientEnd(asyncio.Transport):
    """A client's transport, and the sink of the bytes for the client.

    Args:
        parsed: Commands by their bytes, of all clients: the same bytes are parsed once.
    """

    __slots__ = (
        "_client", "_due", "_frame", "_frames", "_gone", "_head", "_loop", "_parsed", "_reader",
        "_scanned", "_server_ended", "incoming", "out",
    )  # fmt: skip

    def __init__(
        self, loop: VirtualLoop, client: LoadConnection, parsed: dict[bytes, pb.BaseCommand]
    ) -> None:
        super().__init__()
        self.out: Pipe
        self.incoming: Pipe
        self._loop = loop
        self._client = client
        self._parsed = parsed
        self._reader = self._own_reader()
        self._frames: deque[ReceivedFrame] = deque()
        self._frame: ReceivedFrame | None = None
        self._head = b""
        self._scanned = 0
        self._due = -1.0
        self._server_ended = self._gone = False

    # -- the client's transport ---------------------------------------------------------------

    def write(self, data: bytes) -> None:  # type: ignore[override]
        """Send at once."""
        if not self._gone:
            self.out.send((data,), len(data))

    def is_closing(self) -> bool:
        """Tell whether nothing can be sent any more."""
        return self._gone

    def abort(self) -> None:
        """Close at once; unread bytes make the close a reset."""
        if not self._gone:
            self._gone = True
            self.arriving()
            unread = self.incoming.visible > self.incoming.read
            self._frames.clear()
            self.out.end(reset=unread)

    def pause_reading(self) -> None:
        """Read nothing, until told otherwise."""
        self._read_by(NEVER)

    def resume_reading(self) -> None:
        """Read again."""
        self._read_by(self._own_reader())

    def _own_reader(self) -> Reader:
        """Return a reader of the client's speed, from now on."""
        budget = self._client.budget
        return UNLIMITED if budget is None else Paced(budget.rate, self._loop._now)

    def _read_by(self, reader: Reader) -> None:
        self.arriving()
        self._reader = reader
        self.arrived()

    # -- the sink of ``incoming`` -------------------------------------------------------------

    def sent(self, buffers: Sequence[Buffer]) -> None:
        """See where frames begin and end."""
        if not self._gone:
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
            if size <= left:
                frame.pieces.append(buffer)
                self._scanned += size
                self._frame = None if size == left else frame
                return
            frame.pieces.append(memoryview(buffer)[:left])
            self._scanned, self._frame = frame.end, None
            buffer = memoryview(buffer)[left:]

    def arriving(self) -> None:
        """Read the bytes visible until now, as far as the reader's speed allows."""
        incoming = self.incoming
        read = self._reader.read_by(self._loop._now, incoming.read, incoming.visible)
        if read > incoming.read:
            incoming.was_read(read)

    def arrived(self) -> None:
        """Read, hand over whole frames, and arm the next read."""
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
            when = self._reader.moment_of(wanted, self._loop._now, incoming.read, incoming.visible)
            if when is not None and when != self._due:
                self._due = when
                self._loop.after(when, self._is_due, when)
        elif self._server_ended and incoming.read == incoming.taken:
            self._over(None)

    def _wanted(self) -> int:
        """Return the offset of the next event in the stream; 0 without one."""
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
                self._begin(frame)
            if frame.end > read:
                return
            self._frames.popleft()
            self._receive(frame)

    def _begin(self, frame: ReceivedFrame) -> None:
        """Let the client note the first byte of a frame."""
        frame.begun = True
        self._client.bytes_received(1)
        found = listing_in(frame)
        if found is not None:
            frame.request_id, frame.offset = found
            frame.body = self._client.new_body(frame.request_id)

    def _receive(self, frame: ReceivedFrame) -> None:
        """Hand over a frame that was read whole."""
        client, body, offset = self._client, frame.body, frame.offset
        client.bytes_received(frame.end - frame.start - 1)
        if body is None:
            client.receive(self._command_in(frame))
        else:
            for piece in frame.pieces:
                if offset < len(piece):
                    body.feed(memoryview(piece)[offset:])
                offset = max(0, offset - len(piece))
            client.receive(Listing(frame.request_id, body))

    def _command_in(self, frame: ReceivedFrame) -> pb.BaseCommand:
        data, known = b"".join(frame.pieces), self._parsed
        command = known.get(data)
        if command is None:
            if len(known) >= _MOST_PARSED:
                known.clear()
            command = known[data] = parse_command(data[_HEADER_BYTES:])
        return command

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
            self._client.connection_lost(error)


def listing_in(frame: ReceivedFrame) -> tuple[int, int] | None:
    """Return a listing's request id and its body's offset; None for other frames."""
    head = bytes(frame.pieces[0][: _LENGTH_BYTES + HEAD_BYTES])
    if len(head) < _LENGTH_BYTES + HEAD_BYTES and len(frame.pieces) > 1:
        head = b"".join(frame.pieces[:4])
    found = read_topics_head(head[_LENGTH_BYTES:])
    return None if found is None else (found[0], found[1] + _LENGTH_BYTES)
