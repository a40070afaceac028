"""Yardstick for messages: a server that only answers frames.

It keeps a topic's payloads in a list, answers each SEND with a receipt, and dispatches messages
while its consumer has permits. Run it with ``python -m benchmarks.messages.bare_server``.
"""

from __future__ import annotations

import asyncio
import struct
from typing import cast

import uvloop

import proto.PulsarApi_pb2 as pb
from benchmarks.listings.bare_server import serve
from broker.messages.producer import producer_prefix, receipt_frame
from broker.messages.subscriptions.message_frames import MessageFrames
from proto.frames import encode_command

Type = pb.BaseCommand
_LENGTHS = struct.Struct(">II")
_PAYLOADS: dict[str, list[tuple[int, bytes]]] = {}


class BareServer(asyncio.Protocol):
    """A connection of the bare server, with at most one producer or consumer."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._stored: list[tuple[int, bytes]] = []
        self._next = 0
        self._permits = 0
        self._messages = MessageFrames(1, -1)
        self._prefix = producer_prefix(1)
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport for the answers."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Answer all frames that are complete with a single write."""
        buffer, at = self._buffer, 0
        buffer += data
        out: list[bytes] = []
        while len(buffer) - at > 8:
            size, command_size = _LENGTHS.unpack_from(buffer, at)
            end = at + 4 + size
            if len(buffer) < end:
                break
            command = Type.FromString(bytes(buffer[at + 8 : at + 8 + command_size]))
            self._answer(command, bytes(buffer[at + 8 + command_size : end]), out)
            at = end
        if at:
            del buffer[:at]
        if out:
            self._transport.write(b"".join(out))

    def _answer(self, command: pb.BaseCommand, payload: bytes, out: list[bytes]) -> None:
        kind = command.type
        if kind == Type.SEND:
            self._stored.append((command.send.num_messages, payload))
            sequence_id = command.send.sequence_id
            out.append(receipt_frame(self._prefix, sequence_id, 1, len(self._stored) - 1, 0))
            if len(_WAITING):
                asyncio.get_running_loop().call_soon(_dispatch_all)
        elif kind == Type.FLOW:
            self._permits += command.flow.messagePermits
            self._dispatch(out)
        elif kind == Type.ACK:
            pass
        else:
            out.append(encode_command(self._success(command)))

    def _success(self, command: pb.BaseCommand) -> pb.BaseCommand:
        kind = command.type
        if kind == Type.CONNECT:
            connected = pb.CommandConnected(server_version="bare", protocol_version=20)
            return Type(type=Type.CONNECTED, connected=connected)
        if kind == Type.LOOKUP:
            found = pb.CommandLookupTopicResponse(request_id=command.lookupTopic.request_id)
            return Type(type=Type.LOOKUP_RESPONSE, lookupTopicResponse=found)
        if kind == Type.PRODUCER:
            self._stored = _PAYLOADS.setdefault(command.producer.topic, [])
            made = pb.CommandProducerSuccess(
                request_id=command.producer.request_id, producer_name="bench", schema_version=b""
            )
            return Type(type=Type.PRODUCER_SUCCESS, producer_success=made)
        self._stored = _PAYLOADS.setdefault(command.subscribe.topic, [])
        _WAITING.add(self)
        success = pb.CommandSuccess(request_id=command.subscribe.request_id)
        return Type(type=Type.SUCCESS, success=success)

    def _dispatch(self, out: list[bytes]) -> None:
        while self._permits > 0 and self._next < len(self._stored):
            messages, payload = self._stored[self._next]
            out += (self._messages.header(1, self._next, len(payload)), payload)
            self._next += 1
            self._permits -= messages

    def dispatch(self) -> None:
        """Send stored messages to the connection's consumer, as far as it has permits."""
        out: list[bytes] = []
        self._dispatch(out)
        if out:
            self._transport.write(b"".join(out))

    def connection_lost(self, error: Exception | None) -> None:
        """Remove the connection's consumer from the waiting ones."""
        _WAITING.discard(self)


_WAITING: set[BareServer] = set()


def _dispatch_all() -> None:
    for waiting in tuple(_WAITING):
        waiting.dispatch()


if __name__ == "__main__":
    uvloop.run(serve("bare", BareServer))
