"""Simulated sockets below loadgen's own clients: the code of a client is that of a real run.

A client is handed whole frames instead of bytes, and its read budget decides in advance when it
will have read them.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from limiter.clock import deadline
from loadgen.engine.answer_stream import Listing
from loadgen.engine.connecting import CONNECT_TIMEOUT_SECONDS, Connector
from loadgen.engine.context import RunTime
from loadgen.virtual.links.reading import NEVER, UNLIMITED, Paced
from loadgen.virtual.loop import EPOCH_MS
from proto.frames import HEAD_BYTES
from proto.parsing.parser import parse_command
from proto.topics_response import read_topics_head

if TYPE_CHECKING:
    import proto.PulsarApi_pb2 as pb
    from loadgen.engine.connection import LoadConnection
    from loadgen.virtual.links.client_end import ClientEnd, ReceivedFrame
    from loadgen.virtual.links.network import Network
    from loadgen.virtual.links.reading import Reader

LEAD_SECONDS = 0.5
"""Seconds between the last connection and T0, as between real tasks."""
_LENGTH_BYTES = 4
_HEADER_BYTES = 8
_MOST_PARSED = 10_000


class VirtualRunTime(RunTime):
    """Time relative to T0, which is agreed at once: there is but one task."""

    def agree(self, t0_epoch_seconds: float) -> None:
        """Begin soon."""
        del t0_epoch_seconds
        self.t0 = self.monotonic() + LEAD_SECONDS


def agreed(_: float) -> float:
    """Return T0 on the wall clock: the same in every run."""
    return EPOCH_MS / 1000


class VirtualConnector(Connector):
    """Connects clients over a simulated network."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self._network = network
        self._parsed: dict[bytes, pb.BaseCommand] = {}

    def allow(self, connections: int) -> None:
        """Do nothing: there are no open files."""

    async def resolve(self, service_url: str) -> None:
        """Take note of the server, which is here, whatever its URL says."""
        self.service = urlsplit(service_url).netloc

    async def _connect(
        self, client: LoadConnection, receive_buffer_bytes: int, other: str | None
    ) -> None:
        port = urlsplit(f"//{other or self.service}").port or 0
        sock = VirtualSocket(client, self._parsed)
        sock.end = end = self._network.connect(sock, reader_of(client), port, receive_buffer_bytes)
        try:
            async with deadline(self._network.clock, CONNECT_TIMEOUT_SECONDS):
                await client.handshake
        except BaseException:
            end.close()
            raise


def reader_of(client: LoadConnection) -> Reader:
    """Return what reads as fast as a client does, from now on."""
    if (budget := client.budget) is None:
        return UNLIMITED
    return Paced(budget.rate, client.context.time.monotonic())


class VirtualSocket(asyncio.Transport):
    """The transport that a client writes to, and what hands it frames."""

    def __init__(self, client: LoadConnection, parsed: dict[bytes, pb.BaseCommand]) -> None:
        super().__init__()
        self.end: ClientEnd
        self._client = client
        self._parsed = parsed
        self._closed = False

    # -- the client's transport ---------------------------------------------------------------

    def write(self, data: bytes) -> None:  # type: ignore[override]
        """Send."""
        self.end.send(data)

    def is_closing(self) -> bool:
        """Tell whether nothing can be sent any more."""
        return self._closed

    def abort(self) -> None:
        """Close at once."""
        self._closed = True
        self.end.close()

    def pause_reading(self) -> None:
        """Read nothing, until told otherwise."""
        self.end.read_by(NEVER)

    def resume_reading(self) -> None:
        """Read again."""
        self.end.read_by(reader_of(self._client))

    # -- what happens -------------------------------------------------------------------------

    def connected(self) -> None:
        """Let the client shake hands."""
        self._client.connection_made(self)

    def frame_begins(self, frame: ReceivedFrame) -> None:
        """Let the client note its first byte."""
        client = self._client
        client.bytes_received(1)
        found = listing_in(frame)
        if found is not None:
            frame.request_id, frame.offset = found
            frame.body = client.new_body(frame.request_id)

    def frame_received(self, frame: ReceivedFrame) -> None:
        """Hand over a frame that was read whole."""
        client = self._client
        client.bytes_received(frame.size_bytes - 1)
        body, offset = frame.body, frame.offset
        if body is None:
            client.receive(parsed(frame, self._parsed))
        else:
            for piece in frame.pieces:
                if offset < len(piece):
                    body.feed(memoryview(piece)[offset:])
                offset = max(0, offset - len(piece))
            client.receive(Listing(frame.request_id, body))

    def disconnected(self, error: Exception | None) -> None:
        """Tell the client that the server has ended the connection."""
        self._closed = True
        self._client.connection_lost(error)


def listing_in(frame: ReceivedFrame) -> tuple[int, int] | None:
    """Return a listing's request id and where its body begins in the frame; None if it is none."""
    head = bytes(frame.pieces[0][: _LENGTH_BYTES + HEAD_BYTES])
    if len(head) < _LENGTH_BYTES + HEAD_BYTES and len(frame.pieces) > 1:
        head = b"".join(frame.pieces[:4])
    found = read_topics_head(head[_LENGTH_BYTES:])
    return None if found is None else (found[0], found[1] + _LENGTH_BYTES)


def parsed(frame: ReceivedFrame, known: dict[bytes, pb.BaseCommand]) -> pb.BaseCommand:
    """Return a frame's command; the same bytes are parsed once."""
    data = b"".join(frame.pieces)
    command = known.get(data)
    if command is None:
        if len(known) >= _MOST_PARSED:
            known.clear()
        command = known[data] = parse_command(data[_HEADER_BYTES:])
    return command
