"""A message says which one it is, and its consumer's stream finds it whole or broken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import proto.PulsarApi_pb2 as pb
from loadgen.scenarios.produce_consume.frames import (
    MessageStream,
    message_frame,
    read_message,
)
from proto.errors import RemoteProtocolError
from proto.frames import encode_command, split_body

SIZE = 40
PONG = encode_command(pb.BaseCommand(type=pb.BaseCommand.PONG, pong=pb.CommandPong()))


def tail_of(sent: bytes) -> bytes:
    """What stands behind the command of a SEND; a broker passes it on as it is."""
    return split_body(sent[4:], len(sent) - 4)[1]


def delivered(client: int, number: int, consumer: int = 1) -> bytes:
    """The MESSAGE by which a broker passes a producer's message on."""
    tail = tail_of(message_frame(client, number, SIZE, keys=3))
    message = pb.CommandMessage(
        consumer_id=consumer, message_id=pb.MessageIdData(ledgerId=1, entryId=number)
    )
    data = pb.BaseCommand(type=pb.BaseCommand.MESSAGE, message=message).SerializeToString()
    lengths = (len(data) + 4 + len(tail)).to_bytes(4, "big") + len(data).to_bytes(4, "big")
    return lengths + data + tail


@given(st.integers(0, 1 << 31), st.integers(1, 1 << 31), st.integers(0, 5))
def test_a_message_names_its_producer_and_its_number(client: int, number: int, keys: int) -> None:
    tail = tail_of(message_frame(client, number, SIZE, keys))
    assert read_message(tail, SIZE) == (client, number)


@given(st.data())
def test_a_message_with_a_changed_byte_is_broken(data: st.DataObject) -> None:
    tail = bytearray(tail_of(message_frame(1, 2, SIZE, keys=0)))
    place = data.draw(st.integers(2, len(tail) - 1))
    tail[place] ^= data.draw(st.integers(1, 255))
    assert read_message(bytes(tail), SIZE) is None


def test_a_message_of_another_size_is_broken() -> None:
    assert read_message(tail_of(message_frame(1, 2, SIZE + 1, keys=0)), SIZE) is None


@given(st.integers(1, 200))
def test_messages_and_commands_are_found_however_the_bytes_are_cut(size: int) -> None:
    got = []
    stream = MessageStream(lambda message, tail: got.append((message.message_id.entryId, tail)))
    data = delivered(1, 5) + PONG + delivered(1, 6)
    others = []
    for begin in range(0, len(data), size):
        others += stream.feed(memoryview(data)[begin : begin + size])
    assert [(entry, read_message(tail, SIZE)) for entry, tail in got] == [(5, (1, 5)), (6, (1, 6))]
    assert [each.type for each in others] == [pb.BaseCommand.PONG]
    assert stream.idle


def test_a_message_for_another_consumer_is_refused() -> None:
    stream = MessageStream(lambda message, tail: None)
    with pytest.raises(RemoteProtocolError, match="a message for consumer 2"):
        stream.feed(memoryview(delivered(1, 5, consumer=2)))
