"""A client in a separate thread: it waits for its socket, and counts received messages."""

import socket
import struct
from collections.abc import Sequence

import proto.PulsarApi_pb2 as pb
from proto.frames import encode_command
from tests.proof.result import ProofError

Type = pb.BaseCommand
PATIENCE_SECONDS = 120.0
SUBSCRIPTION = "s"
_LENGTHS = struct.Struct(">II")
_READ_BYTES = 1 << 20
_REDELIVERED_AT_ONCE = 5_000
_PONG = encode_command(Type(type=Type.PONG, pong=pb.CommandPong()))


class ConsumingClient:
    def __init__(self, url: str) -> None:
        host, _, port = url.removeprefix("pulsar://").rpartition(":")
        self._socket = socket.create_connection((host, int(port)), PATIENCE_SECONDS)
        self._buffer = bytearray()
        self._tell(
            Type(
                type=Type.CONNECT,
                connect=pb.CommandConnect(client_version="proof", protocol_version=21),
            )
        )
        self._answers(1)

    def subscribe(
        self,
        topic: str,
        kind: pb.CommandSubscribe.SubType.ValueType,
        count: int,
        subscriptions: Sequence[str] = (),
    ) -> None:
        """Open consumers from the first message on, all in a single batch of requests.

        Args:
            topic: Their topic.
            kind: Subscription type.
            count: Number of consumers.
            subscriptions: One for each consumer, unless shared.
        """
        frames = []
        for number in range(1, count + 1):
            asked = pb.CommandSubscribe(
                topic=topic,
                subscription=subscriptions[number - 1] if subscriptions else SUBSCRIPTION,
                subType=kind,
                consumer_id=number,
                request_id=number,
                consumer_name=f"consumer-{id(self)}-{number}",
                initialPosition=pb.CommandSubscribe.Earliest,
            )
            frames.append(encode_command(Type(type=Type.SUBSCRIBE, subscribe=asked)))
        self._socket.sendall(b"".join(frames))
        self._answers(count)

    def receive(self, permits: Sequence[int], least: int) -> None:
        """Give consumers 1, 2, ... permits; return after so many messages."""
        self.flow(*permits)
        self._messages(least)

    def flow(self, *permits: int) -> None:
        frames = []
        for number, count in enumerate(permits, 1):
            asked = pb.CommandFlow(consumer_id=number, messagePermits=count)
            frames.append(encode_command(Type(type=Type.FLOW, flow=asked)))
        self._socket.sendall(b"".join(frames))

    def redeliver_all(self, count: int) -> None:
        """Redeliver all messages of consumer 1, and receive them again."""
        asked = pb.CommandRedeliverUnacknowledgedMessages(consumer_id=1)
        kind = Type.REDELIVER_UNACKNOWLEDGED_MESSAGES
        self._tell(Type(type=kind, redeliverUnacknowledgedMessages=asked))
        self.receive([count], count)

    def redeliver(self, ids: Sequence[tuple[int, int]]) -> None:
        """Redeliver messages of consumer 1 by their ids, and receive them again."""
        for first in range(0, len(ids), _REDELIVERED_AT_ONCE):
            some = _message_ids(ids[first : first + _REDELIVERED_AT_ONCE])
            asked = pb.CommandRedeliverUnacknowledgedMessages(consumer_id=1, message_ids=some)
            kind = Type.REDELIVER_UNACKNOWLEDGED_MESSAGES
            self._tell(Type(type=kind, redeliverUnacknowledgedMessages=asked))
        self.receive([len(ids)], len(ids))

    def acknowledge(
        self, ids: Sequence[tuple[int, int]], each: int, ack_set: Sequence[int] = ()
    ) -> None:
        """Acknowledge messages of consumer 1, so many with each ACK; return after all answers."""
        frames = []
        for first in range(0, len(ids), each):
            some = _message_ids(ids[first : first + each], ack_set)
            asked = pb.CommandAck(
                consumer_id=1, ack_type=pb.CommandAck.Individual, message_id=some, request_id=1
            )
            frames.append(encode_command(Type(type=Type.ACK, ack=asked)))
        self._socket.sendall(b"".join(frames))
        self._answers(len(frames))

    def seek_by_time(self, publish_time: int) -> None:
        """Seek to a time; the broker closes consumer 1."""
        self.seek_all(1, publish_time)

    def seek_all(self, count: int, publish_time: int) -> None:
        """Seek to a time with consumers 1, 2, ... simultaneously; the broker closes them."""
        frames = []
        for number in range(1, count + 1):
            asked = pb.CommandSeek(
                consumer_id=number, request_id=number, message_publish_time=publish_time
            )
            frames.append(encode_command(Type(type=Type.SEEK, seek=asked)))
        self._socket.sendall(b"".join(frames))
        self._answers(2 * count)

    def offer_schema(self, topic: str, definition: bytes) -> None:
        """Give the topic an Avro schema."""
        schema = pb.Schema(name="large", schema_data=definition, type=pb.Schema.Avro)
        asked = pb.CommandGetOrCreateSchema(request_id=1, topic=topic, schema=schema)
        self._tell(Type(type=Type.GET_OR_CREATE_SCHEMA, getOrCreateSchema=asked))
        (answer,) = self._answers(1)
        if answer.getOrCreateSchemaResponse.HasField("error_code"):
            raise ProofError(answer.getOrCreateSchemaResponse.error_message)

    def close(self) -> None:
        self._socket.close()

    # -- frames -------------------------------------------------------------------------------

    def _tell(self, command: pb.BaseCommand) -> None:
        self._socket.sendall(encode_command(command))

    def _answers(self, count: int) -> list[pb.BaseCommand]:
        """Return the next answers that are not messages.

        Raises:
            ProofError: An answer is an error, or the connection was closed.
        """
        found: list[pb.BaseCommand] = []
        while len(found) < count:
            command = Type.FromString(self._command())
            if command.HasField("error"):
                raise ProofError(f"the broker refused: {command.error.message}")
            if command.type not in (Type.MESSAGE, Type.ACTIVE_CONSUMER_CHANGE):
                found.append(command)
        return found

    def _messages(self, count: int) -> None:
        while count > 0:
            if self._command()[1] == Type.MESSAGE:
                count -= 1

    def _command(self) -> bytes:
        """Return the next command except PINGs, which are answered."""
        while True:
            self._buffered(_LENGTHS.size)
            size, command_size = _LENGTHS.unpack_from(self._buffer)
            self._buffered(4 + size)
            command = bytes(self._buffer[_LENGTHS.size : _LENGTHS.size + command_size])
            del self._buffer[: 4 + size]
            if command[1] != Type.PING:
                return command
            self._socket.sendall(_PONG)

    def _buffered(self, size: int) -> None:
        while len(self._buffer) < size:
            data = self._socket.recv(_READ_BYTES)
            if not data:
                raise ProofError("the broker closed the connection")
            self._buffer += data


def _message_ids(
    ids: Sequence[tuple[int, int]], ack_set: Sequence[int] = ()
) -> list[pb.MessageIdData]:
    return [pb.MessageIdData(ledgerId=one, entryId=at, ack_set=ack_set) for one, at in ids]
