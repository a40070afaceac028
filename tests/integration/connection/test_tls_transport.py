"""TLS above the plain transport: an entry's end is equally exact."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trustme

import proto.PulsarApi_pb2 as pb
from proto.frames import Frame, encode_command
from proto.transport.connection import Connection
from proto.transport.tls import TlsLayer
from tests.support.clocks.settle import settle

PING = encode_command(pb.BaseCommand(type=pb.BaseCommand.PING, ping=pb.CommandPing()))
PONG = encode_command(pb.BaseCommand(type=pb.BaseCommand.PONG, pong=pb.CommandPong()))
SMALL_BUFFER_BYTES = 65_536


class Certificates:
    def __init__(self) -> None:
        authority = trustme.CA()
        self.server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        authority.issue_cert("127.0.0.1").configure_cert(self.server)
        self.client = ssl.create_default_context()
        authority.configure_trust(self.client)


class Answering(Connection):
    """Answers PING; the test queues the rest."""

    def __init__(self, certificates: Certificates) -> None:
        super().__init__(tls=TlsLayer(certificates.server, server_side=True))
        self.established = asyncio.Event()

    def connected(self) -> None:
        self.established.set()

    def frame_received(self, frame: Frame) -> None:
        if frame.command().type == pb.BaseCommand.PING:
            self.enqueue([PONG], len(PONG))


class Server:
    def __init__(self) -> None:
        self.certificates = Certificates()
        self.connections: list[Answering] = []
        self.address: tuple[str, int] = ("", 0)
        self.clients: list[asyncio.StreamWriter] = []

    def accept(self) -> Answering:
        connection = Answering(self.certificates)
        self.connections.append(connection)
        return connection

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        plain = socket.socket()
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER_BYTES)
        plain.setblocking(False)
        await asyncio.get_running_loop().sock_connect(plain, self.address)
        reader, writer = await asyncio.open_connection(
            sock=plain, ssl=self.certificates.client, server_hostname="127.0.0.1"
        )
        self.clients.append(writer)
        return reader, writer


@asynccontextmanager
async def tls_server() -> AsyncIterator[Server]:
    server = Server()
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL_BUFFER_BYTES)
    listening.bind(("127.0.0.1", 0))
    listener = await asyncio.get_running_loop().create_server(server.accept, sock=listening)
    server.address = listening.getsockname()
    try:
        yield server
    finally:
        listener.close()
        for client in server.clients:
            client.transport.abort()
        for connection in server.connections:
            connection.abort()
            await connection.wait_closed()
        await settle()


async def test_a_command_is_answered_over_tls() -> None:
    async with tls_server() as server:
        reader, writer = await server.connect()
        writer.write(PING)
        assert await reader.readexactly(len(PONG)) == PONG
        writer.close()


async def test_an_entry_is_released_once_the_kernel_has_its_last_byte() -> None:
    async with tls_server() as server:
        # Given a peer that reads nothing
        reader, writer = await server.connect()
        await server.connections[0].established.wait()
        left: list[str] = []
        gone = asyncio.Event()
        payload = bytes(range(256)) * 16_384
        server.connections[0].enqueue(
            [payload], len(payload), lambda: (left.append("left"), gone.set())
        )
        for _ in range(20):
            await asyncio.sleep(0)
        # Then the whole entry counts, however much the kernel took
        assert not left
        assert server.connections[0].outbound.pending_bytes == len(payload) + 96
        # When it reads everything
        received = await reader.readexactly(len(payload))
        await gone.wait()
        assert received == payload
        assert left == ["left"]
        assert server.connections[0].outbound.pending_bytes == 0
        writer.close()


async def test_a_lost_peer_releases_its_pending_entry() -> None:
    async with tls_server() as server:
        _, writer = await server.connect()
        await server.connections[0].established.wait()
        left: list[str] = []
        payload = bytes(8_000_000)
        server.connections[0].enqueue([payload], len(payload), lambda: left.append("left"))
        writer.transport.abort()
        await server.connections[0].wait_closed()
        assert left == ["left"]


async def test_a_peer_without_tls_is_closed() -> None:
    async with tls_server() as server:
        reader, writer = await asyncio.open_connection(*server.address)
        writer.write(PING * 10)
        answer = await reader.read()
        assert PONG not in answer
        await server.connections[0].wait_closed()
        writer.close()


@pytest.mark.parametrize("size", [0, 1, 262_144, 262_145, 1_000_000])
async def test_bytes_of_any_length_arrive_intact(size: int) -> None:
    async with tls_server() as server:
        reader, writer = await server.connect()
        await server.connections[0].established.wait()
        payload = bytes(index % 251 for index in range(size))
        server.connections[0].enqueue([payload, PONG], size + len(PONG))
        assert await reader.readexactly(size + len(PONG)) == payload + PONG
        writer.close()
