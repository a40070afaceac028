"""A broker connection that matches answers with requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

import proto.PulsarApi_pb2 as pb
from proto.frames import FrameDecoder, encode_command, split_body

Type = pb.BaseCommand
_CONNECTED_ID = 0


class RefusedError(Exception):
    """The broker answered with an error."""


class WirePeer(asyncio.Protocol):
    """A connection.

    Attributes:
        on_command: Receives commands that are no answers, with their payload.
        on_lost: Called at the connection's loss.
        is_lost: Whether the connection is lost.
    """

    def __init__(self) -> None:
        self.on_command: Callable[[pb.BaseCommand, bytes], object] = lambda *_: None
        self.on_lost: Callable[[], object] = lambda: None
        self.is_lost = False
        self._decoder = FrameDecoder()
        self._answers: dict[int, asyncio.Future[pb.BaseCommand]] = {}
        self._last_id = _CONNECTED_ID
        self._transport: asyncio.Transport

    @classmethod
    async def connected(cls, address: tuple[str, int], target: str = "") -> WirePeer:
        """Return a connection after its handshake; a target is reached through a proxy."""
        loop = asyncio.get_running_loop()
        _, peer = await loop.create_connection(cls, *address)
        asked = pb.CommandConnect(client_version="wire", protocol_version=21)
        if target:
            asked.proxy_to_broker_url = target
        try:
            await peer._answer_to(_CONNECTED_ID, Type(type=Type.CONNECT, connect=asked))
        except BaseException:
            peer.close()
            raise
        return peer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Handle all complete frames."""
        self._decoder.feed(data)
        while (whole := self._decoder.next_frame()) is not None:
            head, rest = split_body(whole.body(), whole.total_size)
            self._take(pb.BaseCommand.FromString(head), rest)

    def _take(self, command: pb.BaseCommand, rest: bytes) -> None:
        if command.type == Type.PING:
            self.tell(Type(type=Type.PONG, pong=pb.CommandPong()))
            return
        body = command.ListFields()[1][1]
        asked = None
        if command.type == Type.CONNECTED or hasattr(body, "request_id"):
            asked = self._answers.pop(getattr(body, "request_id", _CONNECTED_ID), None)
        if asked is None:
            self.on_command(command, rest)
        elif asked.done():
            pass
        elif command.type == Type.ERROR:
            asked.set_exception(RefusedError(command.error.message))
        else:
            asked.set_result(command)

    def connection_lost(self, _: Exception | None) -> None:
        """Fail all waiters."""
        self.is_lost = True
        for asked in self._answers.values():
            if not asked.done():
                asked.set_exception(ConnectionResetError("the connection is lost"))
        self._answers.clear()
        self.on_lost()

    def close(self) -> None:
        self._transport.close()

    def next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def write(self, frame: bytes) -> None:
        """Send a frame."""
        self._transport.write(frame)

    def tell(self, command: pb.BaseCommand) -> None:
        self.write(encode_command(command))

    async def ask(self, kind: Type.Type.ValueType, name: str, **fields: object) -> pb.BaseCommand:
        """Send a command and return its answer.

        Raises:
            RefusedError: The answer is an error.
            ConnectionResetError: No answer came.
        """
        command = Type(type=kind)
        body = getattr(command, name)
        body.SetInParent()
        body.request_id = request_id = self.next_id()
        for field, value in fields.items():
            if hasattr(value, "CopyFrom") or hasattr(value, "SerializeToString"):
                getattr(body, field).CopyFrom(value)
            else:
                setattr(body, field, value)
        return await self._answer_to(request_id, command)

    async def _answer_to(self, request_id: int, command: pb.BaseCommand) -> pb.BaseCommand:
        if self.is_lost:
            raise ConnectionResetError("the connection is lost")
        asked: asyncio.Future[pb.BaseCommand] = asyncio.get_running_loop().create_future()
        self._answers[request_id] = asked
        self.tell(command)
        return await asked
