"""A minimal client for messages, so that servers are the bottleneck."""

from __future__ import annotations

import asyncio
import struct
from typing import TYPE_CHECKING, Any, cast

import proto.PulsarApi_pb2 as pb
from proto.frames import encode_command, encode_payload_command

if TYPE_CHECKING:
    from collections.abc import Callable

Type = pb.BaseCommand
_LENGTHS = struct.Struct(">II")
_TYPE_AT = 9
_COMMAND_AT = 8
_PONG = encode_command(Type(type=Type.PONG, pong=pb.CommandPong()))
SEND_RECEIPT, MESSAGE, PING = Type.SEND_RECEIPT, Type.MESSAGE, Type.PING


class RawPeer(asyncio.Protocol):
    """A connection that counts receipts, hands messages over, and queues other answers.

    Attributes:
        receipts: Number of received receipts.
        on_message: Called with the bytes of a MESSAGE command and of its payload.
        progress: Set at each receipt.
    """

    def __init__(self) -> None:
        self.receipts = 0
        self.on_message: Callable[[bytes, memoryview], object] | None = None
        self.on_receipts: Callable[[], object] | None = None
        self._answers: asyncio.Queue[pb.BaseCommand] = asyncio.Queue()
        self._buffer = bytearray()
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport of the connection."""
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Process all frames that are complete."""
        buffer, at, before = self._buffer, 0, self.receipts
        buffer += data
        while len(buffer) - at > _TYPE_AT:
            size, command_size = _LENGTHS.unpack_from(buffer, at)
            end = at + 4 + size
            if len(buffer) < end:
                break
            self._take(bytes(buffer[at + _COMMAND_AT : at + _COMMAND_AT + command_size]), at, end)
            at = end
        if at:
            del buffer[:at]
        if self.receipts != before and self.on_receipts is not None:
            self.on_receipts()

    def _take(self, command: bytes, at: int, end: int) -> None:
        kind = command[1]
        if kind == SEND_RECEIPT:
            self.receipts += 1
        elif kind == MESSAGE:
            if self.on_message is not None:
                payload = memoryview(bytes(self._buffer[at + _COMMAND_AT + len(command) : end]))
                self.on_message(command, payload)
        elif kind == PING:
            self.transport.write(_PONG)
        else:
            self._answers.put_nowait(pb.BaseCommand.FromString(command))

    def tell(self, command: pb.BaseCommand) -> None:
        """Send a command without waiting for an answer."""
        self.transport.write(encode_command(command))

    async def ask(self, command: pb.BaseCommand) -> pb.BaseCommand:
        """Send a command, wait for the answer and return it.

        Raises:
            RuntimeError: The answer is an error.
        """
        self.tell(command)
        answer = await self._answers.get()
        if answer.type == Type.ERROR:
            raise RuntimeError(f"the server refused: {answer.error.message}")
        return answer

    # -- a topic ------------------------------------------------------------------------------

    async def produce(self, topic: str) -> None:
        """Look a topic up, and open a producer with id 1 on it."""
        await self.ask(
            Type(type=Type.LOOKUP, lookupTopic=pb.CommandLookupTopic(topic=topic, request_id=1))
        )
        asked = pb.CommandProducer(topic=topic, producer_id=1, request_id=2)
        await self.ask(Type(type=Type.PRODUCER, producer=asked))

    async def consume(self, topic: str, kind: int = pb.CommandSubscribe.Exclusive) -> None:
        """Open a consumer with id 1, which receives a topic from its first message on."""
        asked = pb.CommandSubscribe(topic=topic, subscription="bench", consumer_id=1, request_id=3)
        asked.subType = kind  # type: ignore[assignment]
        asked.initialPosition = pb.CommandSubscribe.Earliest
        await self.ask(Type(type=Type.SUBSCRIBE, subscribe=asked))

    def flow(self, permits: int) -> None:
        """Send permits for more messages to the consumer with id 1."""
        asked = pb.CommandFlow(consumer_id=1, messagePermits=permits)
        self.tell(Type(type=Type.FLOW, flow=asked))

    def acknowledge(self, ids: list[pb.MessageIdData]) -> None:
        """Acknowledge entries individually, with a single command."""
        asked = pb.CommandAck(consumer_id=1, ack_type=pb.CommandAck.Individual, message_id=ids)
        self.tell(Type(type=Type.ACK, ack=asked))


async def connected(host: str, port: int, target: str = "") -> RawPeer:
    """Return a connection after its handshake; ``target`` is a broker behind a proxy."""
    _, peer = await asyncio.get_running_loop().create_connection(RawPeer, host, port)
    connect = pb.CommandConnect(client_version="bench", protocol_version=20)
    if target:
        connect.proxy_to_broker_url = target
    await peer.ask(Type(type=Type.CONNECT, connect=connect))
    return peer


class Sends:
    """The SEND frames of a producer, which differ only in their sequence id.

    Args:
        size_bytes: Size of a message in bytes.
        batch: Number of messages in a SEND; 1 means no batch.
    """

    def __init__(self, size_bytes: int, batch: int) -> None:
        metadata = pb.MessageMetadata(producer_name="bench", sequence_id=0, publish_time=1)
        if batch > 1:
            metadata.num_messages_in_batch = batch
        self.batch = batch
        whole = encode_payload_command(
            self._command(0), metadata.SerializeToString(), b"x" * (size_bytes * batch)
        )
        _, command_size = _LENGTHS.unpack_from(whole)
        self._tail = whole[_COMMAND_AT + command_size :]

    def _command(self, sequence_id: int) -> pb.BaseCommand:
        send = pb.CommandSend(producer_id=1, sequence_id=sequence_id, num_messages=self.batch)
        return Type(type=Type.SEND, send=send)

    def frame(self, sequence_id: int) -> bytes:
        """Return the SEND frame with a given sequence id."""
        command = self._command(sequence_id).SerializeToString()
        size = len(command)
        return _LENGTHS.pack(size + 4 + len(self._tail), size) + command + self._tail


def message_of(command: bytes) -> Any:  # noqa: ANN401 - protobuf's own type
    """Parse the bytes of a MESSAGE command, and return it."""
    return pb.BaseCommand.FromString(command).message
