"""A peer with hand-made frames that reads bytes on command.

Knows only the framing, so that faults in Floodgate's client library cannot hide faults in its
servers. The receive buffer is small: unread bytes stay with the server.
"""

import asyncio
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

import proto.PulsarApi_pb2 as pb
from tests.support.peers.frames import frame, pong, split_frame

RECEIVE_BUFFER_BYTES = 4_096
GET_TOPICS = pb.BaseCommand.GET_TOPICS_OF_NAMESPACE


class RawPeer:
    """A socket, used as ``async with await RawPeer.connect(url) as peer``."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def connect(cls, url: str, receive_buffer_bytes: int = RECEIVE_BUFFER_BYTES) -> Self:
        host, _, port = url.removeprefix("pulsar://").rpartition(":")
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        peer = cls(sock)
        with peer._closed_unless_done():
            await peer._loop.sock_connect(sock, (host, int(port)))
        return peer

    @classmethod
    async def shaken_hands(
        cls, url: str, receive_buffer_bytes: int = RECEIVE_BUFFER_BYTES, target: str | None = None
    ) -> Self:
        """Open a socket and finish the handshake; ``target`` asks the proxy for a pipe."""
        peer = await cls.connect(url, receive_buffer_bytes)
        await peer.shake_hands(connect_command(target))
        return peer

    async def shake_hands(self, connect: pb.BaseCommand) -> None:
        """Finish the handshake; close the socket on failure."""
        with self._closed_unless_done():
            await self.send(connect)
            answer = await self.command()
            assert answer.type == pb.BaseCommand.CONNECTED, answer

    @contextmanager
    def _closed_unless_done(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.close()
            raise

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    @property
    def address(self) -> str:
        """This end as the server sees it, ``host:port``."""
        host, port = self._socket.getsockname()
        return f"{host}:{port}"

    async def send(self, *commands: pb.BaseCommand) -> None:
        """Send commands in one write."""
        await self.send_bytes(b"".join(map(frame, commands)))

    async def send_bytes(self, data: bytes) -> None:
        await self._loop.sock_sendall(self._socket, data)

    async def read(self, count: int) -> bytes:
        """Read exactly ``count`` bytes.

        Raises:
            EOFError: The server closed first.
        """
        data = bytearray()
        while len(data) < count:
            chunk = await self._loop.sock_recv(self._socket, min(65_536, count - len(data)))
            if not chunk:
                raise EOFError(bytes(data))
            data += chunk
        return bytes(data)

    async def frame(self) -> bytes:
        """Read a frame without its first length field."""
        (size,) = struct.unpack(">I", await self.read(4))
        return await self.read(size)

    async def command(self) -> pb.BaseCommand:
        return split_frame(await self.frame())[0]

    async def answer(self) -> pb.BaseCommand:
        """Read the next command except PINGs, which are answered."""
        while (command := await self.command()).type == pb.BaseCommand.PING:
            await self.send(pong())
        return command

    async def rest(self) -> bytes:
        """Read until the server closes and return the bytes."""
        data = bytearray()
        try:
            while chunk := await self._loop.sock_recv(self._socket, 65_536):
                data += chunk
        except ConnectionError:
            pass
        return bytes(data)

    def close(self) -> None:
        """Close the socket; with bytes unread the server sees a reset."""
        self._socket.close()


def connect_command(target: str | None = None, protocol_version: int = 20) -> pb.BaseCommand:
    connect = pb.CommandConnect(client_version="raw-peer", protocol_version=protocol_version)
    if target is not None:
        connect.proxy_to_broker_url = target
    return pb.BaseCommand(type=pb.BaseCommand.CONNECT, connect=connect)


def topics_command(request_id: int, namespace: str, **fields: object) -> pb.BaseCommand:
    request = pb.CommandGetTopicsOfNamespace(request_id=request_id, namespace=namespace, **fields)
    return pb.BaseCommand(type=GET_TOPICS, getTopicsOfNamespace=request)


def lookup_command(request_id: int, topic: str) -> pb.BaseCommand:
    lookup = pb.CommandLookupTopic(request_id=request_id, topic=topic)
    return pb.BaseCommand(type=pb.BaseCommand.LOOKUP, lookupTopic=lookup)


def partitions_command(request_id: int, topic: str) -> pb.BaseCommand:
    query = pb.CommandPartitionedTopicMetadata(request_id=request_id, topic=topic)
    return pb.BaseCommand(type=pb.BaseCommand.PARTITIONED_METADATA, partitionMetadata=query)
