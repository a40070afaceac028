"""A dialogue's connection: frames in, frames out, and an abrupt loss on demand."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from typing import Self

from limiter.clock import LoopClock, deadline
from proto import PulsarApi_pb2 as pb
from tests.support.dialogues import wire
from tests.support.peers.frames import frame, pong, split_frame

CONNECT_SECONDS = 20.0
_LOST_AT_ONCE = struct.pack("ii", 1, 0)
"""SO_LINGER: closing resets the connection."""


class DialogueConnection(asyncio.Protocol):
    """A connection after its handshake; answers PINGs."""

    def __init__(self, on_frame: Callable[[pb.BaseCommand | None, bytes], None]) -> None:
        """Pass frames after CONNECTED to ``on_frame``; None when the server closes."""
        self._on_frame = on_frame
        self._buffer = bytearray()
        self._connected: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.Transport | None = None
        self.is_open = True

    @classmethod
    async def opened(
        cls, address: str, on_frame: Callable[[pb.BaseCommand | None, bytes], None]
    ) -> Self:
        """Connect to ``host:port`` and wait for CONNECTED.

        Raises:
            OSError: No listener, or the server closes.
            TimeoutError: No CONNECTED came.
        """
        host, _, port = address.rpartition(":")
        loop = asyncio.get_running_loop()
        async with deadline(LoopClock(), CONNECT_SECONDS):
            _, self = await loop.create_connection(lambda: cls(on_frame), host, int(port))
            await self._connected
        return self

    def send(self, data: bytes) -> None:
        """Send bytes; a no-op after the server has closed."""
        if self._transport is not None and self.is_open:
            self._transport.write(data)

    def lose(self) -> None:
        was_open, self.is_open = self.is_open, False
        if self._transport is not None and was_open:
            sock = self._transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LOST_AT_ONCE)
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(wire.connect_bytes())

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while len(self._buffer) >= 4:
            end = 4 + int.from_bytes(self._buffer[:4], "big")
            if len(self._buffer) < end:
                return
            body = bytes(self._buffer[4:end])
            del self._buffer[:end]
            self._take(*split_frame(body))

    def _take(self, command: pb.BaseCommand, behind: bytes) -> None:
        if not self.is_open:
            return
        if not self._connected.done():
            assert command.type == pb.BaseCommand.CONNECTED, f"CONNECT was answered by {command}"
            self._connected.set_result(None)
            return
        if command.type == pb.BaseCommand.PING:
            self.send(frame(pong()))
        self._on_frame(command, behind)

    def connection_lost(self, error: Exception | None) -> None:
        if not self._connected.done():
            self._connected.set_exception(ConnectionError("closed before CONNECTED"))
        elif self.is_open:
            self.is_open = False
            self._on_frame(None, b"")
