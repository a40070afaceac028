"""The frames of ``produce-consume``, and the header by which a message says which one it is."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from proto.errors import RemoteProtocolError
from proto.frames import (
    FrameDecoder,
    encode_command,
    encode_payload_command,
    split_body,
    verify_checksum,
)
from proto.parsing.parser import parse_command

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PRODUCER_ID = CONSUMER_ID = 1
# Which producer's, which of its messages; zeros follow, up to the message's size.
_HEADER = struct.Struct(">II")
HEADER_BYTES = _HEADER.size
_LENGTH = struct.Struct(">I")
_CHECKSUM_BYTES = 6
_TYPES = {
    "exclusive": pb.CommandSubscribe.Exclusive,
    "shared": pb.CommandSubscribe.Shared,
    "key-shared": pb.CommandSubscribe.Key_Shared,
}


def topic_of(namespace: str, client: int) -> str:
    """Return the topic of a producer."""
    return f"persistent://{namespace}/produce-consume-{client}"


def message_frame(client: int, sequence_id: int, size_bytes: int, keys: int) -> bytes:
    """Return the SEND of a producer's message."""
    sent = pb.CommandSend(producer_id=PRODUCER_ID, sequence_id=sequence_id, num_messages=1)
    metadata = pb.MessageMetadata(
        producer_name=f"produce-consume-{client}", sequence_id=sequence_id, publish_time=1
    )
    if keys:
        metadata.partition_key = str(sequence_id % keys)
    payload = _HEADER.pack(client, sequence_id) + bytes(size_bytes - HEADER_BYTES)
    command = pb.BaseCommand(type=pb.BaseCommand.SEND, send=sent)
    return encode_payload_command(command, metadata.SerializeToString(), payload)


def subscribe_frame(topic: str, subscription: str, subscription_type: str) -> bytes:
    """Return a SUBSCRIBE from the end, of a subscription that goes with its consumers."""
    asked = pb.CommandSubscribe(
        topic=topic,
        subscription=subscription,
        subType=_TYPES[subscription_type],
        consumer_id=CONSUMER_ID,
        request_id=2,
        durable=False,
    )
    return encode_command(pb.BaseCommand(type=pb.BaseCommand.SUBSCRIBE, subscribe=asked))


def flow_frame(permits: int) -> bytes:
    """Return a FLOW."""
    asked = pb.CommandFlow(consumer_id=CONSUMER_ID, messagePermits=permits)
    return encode_command(pb.BaseCommand(type=pb.BaseCommand.FLOW, flow=asked))


def ack_frame(message_ids: Sequence[pb.MessageIdData]) -> bytes:
    """Return an ACK of single messages."""
    asked = pb.CommandAck(
        consumer_id=CONSUMER_ID, ack_type=pb.CommandAck.Individual, message_id=message_ids
    )
    return encode_command(pb.BaseCommand(type=pb.BaseCommand.ACK, ack=asked))


def read_message(tail: bytes, size_bytes: int) -> tuple[int, int] | None:
    """Return producer and number of a message from what follows its command; None if it is broken.

    Args:
        tail: Checksum, metadata and payload.
        size_bytes: Size that a whole payload has.
    """
    if not verify_checksum(tail):
        return None
    begin = _CHECKSUM_BYTES if tail.startswith(b"\x0e\x01") else 0
    try:
        payload = begin + _LENGTH.size + _LENGTH.unpack_from(tail, begin)[0]
        client, sequence_id = _HEADER.unpack_from(tail, payload)
    except struct.error:
        return None
    return (client, sequence_id) if len(tail) - payload == size_bytes else None


class MessageStream:
    """The incoming bytes of a consumer's connection.

    Args:
        on_message: Takes a MESSAGE, and what follows its command.
    """

    def __init__(self, on_message: Callable[[pb.CommandMessage, bytes], None]) -> None:
        self._decoder = FrameDecoder()
        self._on_message = on_message

    @property
    def idle(self) -> bool:
        """True if the stream stands between two frames."""
        return not self._decoder.within_frame

    def feed(self, chunk: memoryview) -> list[pb.BaseCommand]:
        """Take bytes as they come, hand out messages, return the other commands.

        Raises:
            RemoteProtocolError: The bytes are not Pulsar's binary protocol.
        """
        self._decoder.feed(bytes(chunk))
        others = []
        while (frame := self._decoder.next_frame()) is not None:
            data, tail = split_body(frame.body(), frame.total_size)
            command = parse_command(data)
            if command.type != pb.BaseCommand.MESSAGE:
                others.append(command)
            elif command.message.consumer_id != CONSUMER_ID:
                raise RemoteProtocolError(f"a message for consumer {command.message.consumer_id}")
            else:
                self._on_message(command.message, tail)
        return others
