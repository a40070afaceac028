"""A broker that answers CONNECT and then treats bytes as bytes: a pipe's far end."""

from __future__ import annotations

import asyncio
from typing import Self

import proto.PulsarApi_pb2 as pb
from tests.support.peers.frames import frame

GREETING_BYTES = 4


class ByteBroker:
    """Listens while its block runs; hands every connection to the test.

    Attributes:
        url: ``pulsar://host:port``.
        answer: Answer to CONNECT; None for silence.
    """

    def __init__(self, answer: pb.BaseCommand | None) -> None:
        self.answer = answer
        self.url = ""
        self._arrived: asyncio.Queue[ByteBrokerConnection] = asyncio.Queue()
        self._writers: list[asyncio.StreamWriter] = []
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._arrive, "127.0.0.1", 0)
        self.url = f"pulsar://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()
        for writer in self._writers:
            writer.transport.abort()

    def close(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _arrive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        size = int.from_bytes(await reader.readexactly(GREETING_BYTES), "big")
        body = await reader.readexactly(size)
        connect = pb.BaseCommand.FromString(body[GREETING_BYTES:]).connect
        if self.answer is not None:
            writer.write(frame(self.answer))
        await self._arrived.put(ByteBrokerConnection(connect, reader, writer))

    async def connection(self) -> ByteBrokerConnection:
        """Wait for the next connection's CONNECT."""
        return await self._arrived.get()


class ByteBrokerConnection:
    """A pipe's far end.

    Attributes:
        connect: The received CONNECT.
        reader: Bytes after the CONNECT.
        writer: The way back.
    """

    def __init__(
        self, connect: pb.CommandConnect, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.connect = connect
        self.reader = reader
        self.writer = writer

    async def next_command(self) -> pb.BaseCommand:
        size = int.from_bytes(await self.reader.readexactly(GREETING_BYTES), "big")
        body = await self.reader.readexactly(size)
        return pb.BaseCommand.FromString(body[GREETING_BYTES:])


def connected_command() -> pb.BaseCommand:
    connected = pb.CommandConnected(
        server_version="byte broker", protocol_version=21, max_message_size=1_234_567
    )
    connected.feature_flags.supports_topic_watchers = True
    return pb.BaseCommand(type=pb.BaseCommand.CONNECTED, connected=connected)
