"""A peer that reads exactly the requested bytes, over memory or real sockets.

``reads``, ``sends``, ``closes`` and ``resets`` mean the same over every link: a transport without a
socket or kernel buffer, and loopback sockets with small buffers at both ends, each plain and with
TLS. With TLS a peer takes whole records, just enough for the requested bytes. No sleeps: expected
bytes are awaited.
"""

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import accumulate
from typing import Protocol

import trustme

import proto.PulsarApi_pb2 as pb
from limiter.flow.causes import PauseCause
from limiter.flow.flow_control import CooldownRules, FlowControl, FlowRules
from limiter.flow.outbound_buffer import WriteBufferMarks
from limiter.flow.totals import FlowTotals
from proto.frames import Frame, encode_command
from proto.transport.connection import Connection
from proto.transport.outbound_queue import HANDOVER_BYTES
from proto.transport.process_flow import HangupWatch, ProcessFlow
from proto.transport.tls import TlsLayer
from tests.support.clocks.manual_clock import ManualClock
from tests.support.peers.memory_transport import MemoryTransport
from tests.support.processes.cluster import until

TURNS = 100_000
"""Turns of the loop after which a state counts as unreachable."""
SMALL_BUFFER_BYTES = 8_192
"""SO_SNDBUF of the server's side and SO_RCVBUF of the peer; Linux keeps twice the number."""
SWALLOWED_BYTES = 131_072
"""Exceeds the kernel's capacity with such buffers, whatever the rounding."""
RECORD_BYTES = 16_384
"""Plain bytes of a full TLS record."""
FULL = PauseCause.OUTBOUND_BUFFER_FULL
_RECORD_HEADER = struct.Struct(">BHH")
_LINGER_FOR_NOTHING = struct.pack("ii", 1, 0)


def success_frames(*request_ids: int) -> bytes:
    """Return frames of a kind that keeps its order."""
    return b"".join(
        encode_command(
            pb.BaseCommand(
                type=pb.BaseCommand.SUCCESS, success=pb.CommandSuccess(request_id=number)
            )
        )
        for number in request_ids
    )


def lookup_frames(*request_ids: int) -> bytes:
    """Return frames that control frames may overtake."""
    return b"".join(
        encode_command(
            pb.BaseCommand(
                type=pb.BaseCommand.LOOKUP,
                lookupTopic=pb.CommandLookupTopic(topic="topic", request_id=number),
            )
        )
        for number in request_ids
    )


PING_FRAME = encode_command(pb.BaseCommand(type=pb.BaseCommand.PING, ping=pb.CommandPing()))
PING_ID = 0
"""The entry of a PING in the notes of a WatchedConnection."""


def batch_ends(sizes: Sequence[int]) -> list[int]:
    """Return the read byte counts at which each entry behind the first has left.

    Small entries are written together and leave together; the first was written alone.
    """
    batches: list[list[int]] = []
    for size in sizes:
        small = len(batches) > 1 and sum(batches[-1]) + size <= HANDOVER_BYTES
        if small:
            batches[-1].append(size)
        else:
            batches.append([size])
    last_bytes = accumulate(map(sum, batches))
    return [end for batch, end in zip(batches, last_bytes, strict=True) for _ in batch]


# -- the side under test --------------------------------------------------------------------------


@dataclass(frozen=True)
class Flow:
    """Flow control of the connection under test; default profile pulsar without cooldown.

    Attributes:
        marks: Watermarks of writability.
        pauses: Whether handling pauses while unwritable.
        parks: Whether frames are parked meanwhile, so that control frames overtake them.
        cooldown: Command rate after a resume.
        clock: Of the cooldown and of the watch for departing peers that are not read.
    """

    marks: WriteBufferMarks = field(default_factory=WriteBufferMarks)
    pauses: bool = True
    parks: bool = False
    cooldown: CooldownRules = field(default_factory=lambda: CooldownRules(window_seconds=0))
    clock: ManualClock = field(default_factory=ManualClock)


class WatchedConnection(Connection):
    """A server's side that records its events; ``on_frame`` may do more.

    Attributes:
        taken: Request ids of handled frames, and PING_ID for each PING.
        left: Names of entries that have left, in order.
        writability: Reported states of the outbound buffer.
        end: At the loss: the entries that had left, and the pending bytes.
    """

    def __init__(self, flow: Flow, tls: TlsLayer | None) -> None:
        self.flow_totals = FlowTotals(flow.clock)
        self.totals = self.flow_totals.outbound
        process = ProcessFlow(self.totals, self.flow_totals, HangupWatch(flow.clock), flow.parks)
        super().__init__(marks=flow.marks, process=process, tls=tls)
        rules = FlowRules(flow.marks, flow.pauses, flow.cooldown)
        self._flow = FlowControl(rules, self.gate, flow.clock)
        self.up = False
        self.taken: list[int] = []
        self.left: list[str] = []
        self.writability: list[bool] = []
        self.end: tuple[list[str], int] | None = None
        self.on_frame: Callable[[int], object] = lambda _: None

    def connected(self) -> None:
        self.up = True

    def frame_received(self, frame: Frame) -> None:
        command = frame.command()
        if command.type == pb.BaseCommand.PING:
            self.taken.append(PING_ID)
            return
        self._flow.command_received()
        is_lookup = command.type == pb.BaseCommand.LOOKUP
        request_id = (command.lookupTopic if is_lookup else command.success).request_id
        self.taken.append(request_id)
        self.on_frame(request_id)

    def writability_changed(self, *, writable: bool) -> None:
        self.writability.append(writable)
        self._flow.writability_changed(writable=writable)

    def lost(self, error: Exception | None) -> None:
        self._flow.end()
        self.end = list(self.left), self.totals.pending_bytes

    def queue(self, name: str, data: bytes) -> None:
        """Queue an entry; note when it has left."""
        self.enqueue([data], len(data), partial(self.left.append, name))


def new_connection(flow: Flow, tls: TlsLayer | None = None) -> WatchedConnection:
    """Return the connection under test: its only constructor."""
    return WatchedConnection(flow, tls)


# -- links ----------------------------------------------------------------------------------------


class Wire(Protocol):
    """The peer's end of a link; the bytes are ciphertext with TLS."""

    async def take(self, size: int) -> bytes:
        """Return exactly ``size`` bytes; later bytes stay in place."""

    async def put(self, data: bytes) -> None:
        """Send as much as the other side reads."""

    def finish(self) -> None:
        """Send the end of the stream."""

    def reset(self) -> None:
        """Break the connection off."""


class MemoryWire:
    """The peer's end of a MemoryTransport: unread bytes stay there."""

    def __init__(self, transport: MemoryTransport) -> None:
        self._transport = transport
        self._taken = 0

    async def take(self, size: int) -> bytes:
        end = self._taken + size
        for _ in range(TURNS):
            self._transport.peer_reads(end - len(self._transport.received))
            if len(self._transport.received) >= end:
                taken = bytes(self._transport.received[self._taken : end])
                self._taken = end
                return taken
            await asyncio.sleep(0)
        raise AssertionError(f"never came: {size} bytes")

    async def put(self, data: bytes) -> None:
        self._transport.peer_sends(data)

    def finish(self) -> None:
        self._transport.peer_closes()

    def reset(self) -> None:
        self._transport.breaks(ConnectionResetError())


class SocketWire:
    """The peer's end of a TCP connection."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end

    async def take(self, size: int) -> bytes:
        taken = bytearray()
        while len(taken) < size:
            missing = size - len(taken)
            data = await asyncio.get_running_loop().sock_recv(self._socket, missing)
            assert data, f"the stream ended {missing} bytes too early"
            taken += data
        return bytes(taken)

    async def put(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self._socket, data)

    def finish(self) -> None:
        """See Wire.finish. (To close with bytes unread would reset.)"""
        self._socket.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_FOR_NOTHING)
        self._socket.close()


# -- the peer -------------------------------------------------------------------------------------


class ControlledPeer:
    """The other end of a connection under test.

    Attributes:
        received: All read bytes, decrypted.
    """

    def __init__(self, wire: Wire, tls: TlsLayer | None = None) -> None:
        self._wire = wire
        self._tls = tls
        self._ahead = bytearray()
        self.received = bytearray()

    async def shakes_hands(self) -> None:
        """Finish the TLS handshake; a no-op without TLS."""
        if self._tls is None:
            return
        self._tls.start()
        await self._wire.put(self._tls.take_outgoing())
        while not self._tls.established:
            self._ahead += self._tls.receive(await self._record())
            await self._wire.put(self._tls.take_outgoing())

    async def reads(self, size: int) -> bytes:
        if self._tls is None:
            data = await self._wire.take(size) if size else b""
        else:
            while len(self._ahead) < size:
                self._ahead += self._tls.receive(await self._record())
            data = bytes(self._ahead[:size])
            del self._ahead[:size]
        self.received += data
        return data

    async def _record(self) -> bytes:
        header = await self._wire.take(_RECORD_HEADER.size)
        *_, length = _RECORD_HEADER.unpack(header)
        return header + await self._wire.take(length)

    async def sends(self, data: bytes) -> None:
        """Send bytes; over sockets this waits while the other side does not read."""
        await self._wire.put(data if self._tls is None else self._tls.encrypt(data))

    def closes(self) -> None:
        """Send the end of the stream; bytes in flight stay readable."""
        self._wire.finish()

    def resets(self) -> None:
        self._wire.reset()


@dataclass(frozen=True)
class Link:
    """A way to reach the connection under test.

    Attributes:
        name: For a test's id.
        sockets: Loopback sockets instead of memory.
        tls: Whether encrypted.
    """

    name: str
    sockets: bool
    tls: bool

    @property
    def swallowed_bytes(self) -> int:
        """Limit of bytes that left the connection unread by the peer."""
        return SWALLOWED_BYTES if self.sockets else 0


LINKS = (
    Link("memory", sockets=False, tls=False),
    Link("memory-tls", sockets=False, tls=True),
    Link("sockets", sockets=True, tls=False),
    Link("sockets-tls", sockets=True, tls=True),
)


@lru_cache(maxsize=1)
def tls_contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return the server's and the client's context, of this process's own authority."""
    authority = trustme.CA()
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(server)
    client = ssl.create_default_context()
    authority.configure_trust(client)
    return server, client


def _tls_layers() -> tuple[TlsLayer, TlsLayer]:
    server, client = tls_contexts()
    return (
        TlsLayer(server, server_side=True),
        TlsLayer(client, server_side=False, server_hostname="127.0.0.1"),
    )


@asynccontextmanager
async def controlled_peer(
    link: Link, flow: Flow | None = None
) -> AsyncIterator[tuple[WatchedConnection, ControlledPeer]]:
    """Connect a peer to a new connection; both are gone after the block."""
    server_tls, client_tls = _tls_layers() if link.tls else (None, None)
    connection = new_connection(flow or Flow(), server_tls)
    async with _socket_wire(connection) if link.sockets else _memory_wire(connection) as wire:
        peer = ControlledPeer(wire, client_tls)
        await peer.shakes_hands()
        await until(lambda: connection.up, "the connection is up")
        try:
            yield connection, peer
        finally:
            connection.abort()
            await until(lambda: connection.closed, "the connection is gone")


@asynccontextmanager
async def _memory_wire(connection: WatchedConnection) -> AsyncIterator[Wire]:
    yield MemoryWire(MemoryTransport(connection).connect())


@asynccontextmanager
async def _socket_wire(connection: WatchedConnection) -> AsyncIterator[Wire]:
    loop = asyncio.get_running_loop()
    with socket.socket() as listening, socket.socket() as end:
        # Accepted sockets inherit the buffer; the peer's window is fixed at connect.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL_BUFFER_BYTES)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER_BYTES)
        listening.bind(("127.0.0.1", 0))
        server = await loop.create_server(lambda: connection, sock=listening)
        end.setblocking(False)
        await loop.sock_connect(end, listening.getsockname())
        await until(lambda: connection.sender.transport is not None, "the connection was accepted")
        try:
            yield SocketWire(end)
        finally:
            server.close()


@asynccontextmanager
async def peer_of(url: str) -> AsyncIterator[ControlledPeer]:
    """Connect a peer to a running server at ``pulsar://host:port``."""
    host, _, port = url.removeprefix("pulsar://").rpartition(":")
    with socket.socket() as end:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER_BYTES)
        end.setblocking(False)
        await asyncio.get_running_loop().sock_connect(end, (host, int(port)))
        yield ControlledPeer(SocketWire(end))
