from __future__ import annotations

import pytest

import proto.PulsarApi_pb2 as pb
from loadgen.engine.answer_stream import LARGEST_FRAME_BYTES, AnswerStream, Listing
from loadgen.engine.answers import AnswerChecker
from loadgen.plan.clients import Namespace
from proto.errors import RemoteProtocolError
from proto.frames import encode_command, encode_payload_command
from tests.support.peers.stand_in_broker import listing_body, listing_frame, topic_names

Type = pb.BaseCommand
EXPECTATION = Namespace(name="load/ns")
BODY = listing_body(topic_names("load/ns", 40))
PING = encode_command(pb.BaseCommand(type=pb.BaseCommand.PING, ping=pb.CommandPing()))
ERROR = encode_command(
    pb.BaseCommand(
        type=pb.BaseCommand.ERROR,
        error=pb.CommandError(request_id=3, error=pb.ServerError.MetadataError, message="m" * 50),
    )
)


def stream() -> AnswerStream:
    checker = AnswerChecker()
    return AnswerStream(lambda _: checker.body(EXPECTATION))


def feed(target: AnswerStream, data: bytes, step: int) -> list[Listing | pb.BaseCommand]:
    received = []
    for start in range(0, len(data), step):
        received += [each for each, _ in target.feed(memoryview(data)[start : start + step])]
    return received


@pytest.mark.parametrize("step", [1, 2, 7, 19, 20, 21, 100, 1 << 20])
def test_commands_and_listings_are_decoded_wherever_the_stream_is_cut(step: int) -> None:
    target = stream()
    data = PING + listing_frame(1, BODY) + ERROR + listing_frame(2**63, BODY) + PING
    received = feed(target, data, step)
    assert [type(each).__name__ for each in received] == [
        "BaseCommand", "Listing", "BaseCommand", "Listing", "BaseCommand",
    ]  # fmt: skip
    listings = [each for each in received if isinstance(each, Listing)]
    assert [each.request_id for each in listings] == [1, 2**63]
    assert [each.body.data() for each in listings] == [BODY, BODY]


@pytest.mark.parametrize("request_id", [2 ** (7 * size) - 1 for size in range(1, 10)])
@pytest.mark.parametrize("topics", [0, 1, 3])
def test_listings_with_request_ids_and_bodies_of_any_length_are_decoded(
    request_id: int, topics: int
) -> None:
    body = listing_body(topic_names("a/b", topics))
    (listing,) = feed(stream(), listing_frame(request_id, body), 3)
    assert isinstance(listing, Listing)
    assert (listing.request_id, listing.body.data()) == (request_id, body)


def test_a_listing_with_only_a_request_id_is_decoded() -> None:
    (listing,) = feed(stream(), listing_frame(5, b""), 4)
    assert isinstance(listing, Listing)
    assert listing.body.size_bytes == 0


def test_a_listing_in_unusual_field_order_is_decoded() -> None:
    # Given a command whose type follows the response
    response = pb.CommandGetTopicsOfNamespaceResponse.FromString(b"\x08\x01" + BODY)
    response.request_id = 9
    data = response.SerializeToString()
    assert 128 <= len(data) < 16384
    size = bytes([len(data) & 0x7F | 0x80, len(data) >> 7])
    command = b"\x8a\x02" + size + data + b"\x08\x21"
    frame = (len(command) + 4).to_bytes(4, "big") + len(command).to_bytes(4, "big") + command
    (listing,) = feed(stream(), frame, 50)
    assert isinstance(listing, Listing)
    assert (listing.request_id, listing.body.data()) == (9, BODY)


@pytest.mark.parametrize(
    "data",
    [
        (LARGEST_FRAME_BYTES + 1).to_bytes(4, "big") + b"\x00\x00\x00\x05",
        b"\x00\x00\x00\x04\x00\x00\x00\x00",
        b"\x00\x00\x00\x0a" + PING[4:] + b"\x00" * 5,
        b"\x00\x00\x00\x07\x00\x00\x00\x03\xff\xff\xff",
        b"HTTP/1.1 400 Bad Request\r\n",
    ],
)
def test_a_malformed_or_oversized_frame_is_a_protocol_error(data: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        feed(stream(), data, 1 << 20)


def test_a_listing_with_a_trailing_field_is_decoded() -> None:
    # Given a command with the type repeated after the response
    frame = listing_frame(4, BODY)
    command = frame[8:] + b"\x08\x21"
    frame = (len(command) + 4).to_bytes(4, "big") + len(command).to_bytes(4, "big") + command
    (listing,) = feed(stream(), frame, 1000)
    assert isinstance(listing, Listing)
    assert (listing.request_id, listing.body.data()) == (4, BODY)


@pytest.mark.parametrize("command", [b"\x08\x21\x8a\x02", b"\x08\x21\x8a\x02\x02\x10\x01"])
def test_an_incomplete_listing_is_a_protocol_error(command: bytes) -> None:
    frame = (len(command) + 4).to_bytes(4, "big") + len(command).to_bytes(4, "big") + command
    with pytest.raises(RemoteProtocolError):
        feed(stream(), frame, 1)


@pytest.mark.parametrize("step", [1, 9, 1 << 20])
def test_a_message_is_decoded_with_its_payload_wherever_the_stream_is_cut(step: int) -> None:
    # Given a message between two other commands
    message = pb.BaseCommand(type=pb.BaseCommand.MESSAGE)
    message.message.consumer_id = 3
    message.message.message_id.ledgerId = message.message.message_id.entryId = 1
    target, data = stream(), PING + encode_payload_command(message, b"m" * 9, b"p" * 50) + PING
    found = [
        each
        for start in range(0, len(data), step)
        for each in target.feed(memoryview(data)[start : start + step])
    ]
    assert [command.type for command, _ in found] == [Type.PING, Type.MESSAGE, Type.PING]
    assert [payload[10:] for _, payload in found] == [b"", b"m" * 9 + b"p" * 50, b""]


def test_a_payload_after_another_command_is_a_protocol_error() -> None:
    ping = pb.BaseCommand(type=Type.PING, ping=pb.CommandPing())
    with pytest.raises(RemoteProtocolError, match="stand behind a command without payload"):
        feed(stream(), encode_payload_command(ping, b"m", b"p"), 1 << 20)
