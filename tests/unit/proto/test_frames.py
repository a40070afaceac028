"""Frames as real clients and brokers send them, and those that nobody should send."""

from __future__ import annotations

import struct

import pytest
from google.protobuf.message import DecodeError

import proto.PulsarApi_pb2 as pb
from proto.errors import FrameTooLargeError, RemoteProtocolError
from proto.frames import (
    DEFAULT_MAX_MESSAGE_BYTES,
    FRAME_PADDING_BYTES,
    FrameDecoder,
    encode_command,
    encode_payload_command,
    split_body,
    verify_checksum,
)
from proto.parsing.parser import parse_as_pulsar, parse_command

Type = pb.BaseCommand

CONNECT = (
    "00000029 00000025 0802 1221 0a11 50756c7361722d4350502d76342e322e30 2014 2a046e6f6e65"
    "52040801 1001"
)
ONE_MESSAGE = (
    "00000028 00000008 0806320408001000 0e01 7e10dcba 0000000d 0a027031100018bdb9bcdb9f3468656c6c6f"
)
BATCH = (
    "00000048 0000000a 08063206080110001802 0e01 8ccec86a 00000012"
    "0a027032100018beb9bcdb9f34320178 5802"
    "0000000f 0a060a016b120176 120178 1801 4000 61  00000004 1802 4001 6262"
)


def success(request_id: int) -> pb.BaseCommand:
    return pb.BaseCommand(type=Type.SUCCESS, success=pb.CommandSuccess(request_id=request_id))


def error(request_id: int, message: str) -> pb.BaseCommand:
    body = pb.CommandError(request_id=request_id, error=pb.TopicNotFound, message=message)
    return pb.BaseCommand(type=Type.ERROR, error=body)


def connect() -> pb.BaseCommand:
    body = pb.CommandConnect(
        client_version="Pulsar-CPP-v4.2.0", protocol_version=20, auth_method_name="none"
    )
    body.feature_flags.supports_auth_refresh = True
    body.auth_method = pb.AuthMethodNone
    return pb.BaseCommand(type=Type.CONNECT, connect=body)


def get_topics() -> pb.BaseCommand:
    body = pb.CommandGetTopicsOfNamespace(
        request_id=11,
        namespace="public/default",
        mode=pb.CommandGetTopicsOfNamespace.PERSISTENT,
    )
    return pb.BaseCommand(type=Type.GET_TOPICS_OF_NAMESPACE, getTopicsOfNamespace=body)


GOLDEN = [
    (pb.BaseCommand(type=Type.PING, ping=pb.CommandPing()), "00000009 00000005 0812920100"),
    (pb.BaseCommand(type=Type.PONG, pong=pb.CommandPong()), "00000009 00000005 08139a0100"),
    (success(7), "0000000a 00000006 080d6a020807"),
    (error(7, "no"), "00000010 0000000c 080e72080807100b1a026e6f"),
    (
        get_topics(),
        "0000001d 00000019 0820 820214 080b 120e 7075626c69632f64656661756c74 1800",
    ),
]


def only_frame(data: bytes) -> pb.BaseCommand:
    decoder = FrameDecoder()
    decoder.feed(data)
    frame = decoder.next_frame()
    assert frame is not None
    assert decoder.next_frame() is None
    return frame.command()


@pytest.mark.parametrize(("command", "recorded"), GOLDEN)
def test_commands_are_encoded_as_recorded(command: pb.BaseCommand, recorded: str) -> None:
    assert encode_command(command) == bytes.fromhex(recorded)
    assert only_frame(bytes.fromhex(recorded)) == command


def test_the_official_clients_connect_is_read() -> None:
    # When
    command = only_frame(bytes.fromhex(CONNECT))
    # Then
    assert command.connect.client_version == "Pulsar-CPP-v4.2.0"
    assert command.connect.protocol_version == 20
    assert command.connect.auth_method_name == "none"
    assert command.connect.feature_flags.supports_auth_refresh


@pytest.mark.parametrize("recorded", [ONE_MESSAGE, BATCH])
def test_a_send_is_taken_apart_and_put_together_again(recorded: str) -> None:
    # Given
    data = bytes.fromhex(recorded)
    # When
    command, tail = split_body(data[4:], len(data) - 4)
    (metadata_size,) = struct.unpack_from(">I", tail, 6)
    metadata, payload = tail[10 : 10 + metadata_size], tail[10 + metadata_size :]
    # Then
    assert verify_checksum(tail)
    assert encode_payload_command(parse_command(command), metadata, payload) == data


def test_a_changed_payload_does_not_match_its_checksum() -> None:
    # Given
    data = bytes.fromhex(ONE_MESSAGE)
    tail = split_body(data[4:], len(data) - 4)[1]
    # When, Then
    assert not verify_checksum(tail[:-1] + b"x")
    assert verify_checksum(tail[6:])  # carries none


@pytest.mark.parametrize("size", [2, 3, 5])
def test_a_checksum_that_is_cut_off_does_not_match(size: int) -> None:
    assert not verify_checksum(b"\x0e\x01\x00\x00\x00\x00"[:size])


def test_the_length_field_may_say_10236_more_than_the_largest_message() -> None:
    # Given
    limit = DEFAULT_MAX_MESSAGE_BYTES + FRAME_PADDING_BYTES
    at_limit, above = FrameDecoder(), FrameDecoder()
    # When
    at_limit.feed(struct.pack(">I", limit))
    above.feed(struct.pack(">I", limit + 1))
    # Then
    assert at_limit.next_frame() is None
    with pytest.raises(FrameTooLargeError, match=f"a frame of {limit + 1} bytes is announced"):
        above.next_frame()


@pytest.mark.parametrize("size", [0, 1, 3])
def test_a_frame_without_room_for_a_command_is_refused(size: int) -> None:
    with pytest.raises(RemoteProtocolError, match=f"a frame of {size} bytes has no room"):
        only_frame(struct.pack(">I", size) + bytes(size))


def test_a_command_longer_than_its_frame_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="a command of 7 bytes does not fit a frame of 9"):
        only_frame(struct.pack(">II", 9, 7) + b"\x08\x12\x92\x01\x00")


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"\xff", "does not hold a protobuf command"),
        (b"", "unknown type or lacks a required field"),
        (b"\x08\xe7\x07", "unknown type or lacks a required field"),  # type 999
        (b"\x08\x0d\x6a\x00", "unknown type or lacks a required field"),  # SUCCESS without id
    ],
)
def test_what_is_no_command_is_refused(body: bytes, sentence: str) -> None:
    with pytest.raises(RemoteProtocolError, match=sentence):
        parse_command(body)


def broken(command: pb.BaseCommand, text: bytes) -> bytes:
    """Return a command's bytes with ``text`` made invalid UTF-8."""
    return command.SerializeToString().replace(text, b"\xff" * len(text))


LISTING_REQUEST = pb.BaseCommand(
    type=Type.GET_TOPICS_OF_NAMESPACE,
    getTopicsOfNamespace=pb.CommandGetTopicsOfNamespace(
        request_id=1,
        namespace="a/b",
        properties=[pb.KeyValue(key="k", value="v"), pb.KeyValue(key="k", value="!!")],
    ),
)
LISTING = pb.BaseCommand(
    type=Type.GET_TOPICS_OF_NAMESPACE_RESPONSE,
    getTopicsOfNamespaceResponse=pb.CommandGetTopicsOfNamespaceResponse(
        request_id=1, topics=["good", "wrong"]
    ),
)


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (get_topics(), b"public"),
        (connect(), b"none"),
        (LISTING_REQUEST, b"!!"),
        (LISTING, b"wrong"),
    ],
)
def test_text_that_is_not_utf8_is_refused(command: pb.BaseCommand, text: bytes) -> None:
    with pytest.raises(RemoteProtocolError, match="String field had bad UTF-8"):
        parse_command(broken(command, text))


def test_the_parser_itself_refuses_what_is_not_utf8() -> None:
    """In its one pass: a walk over the fields of a large command would hold the event loop."""
    with pytest.raises(DecodeError):
        pb.BaseCommand().ParseFromString(broken(LISTING_REQUEST, b"!!"))


def with_properties(number: int) -> bytes:
    one = pb.KeyValue(key="k", value="v")
    request = pb.CommandGetTopicsOfNamespace(
        request_id=1, namespace="a/b", properties=[one] * number
    )
    command = pb.BaseCommand(type=Type.GET_TOPICS_OF_NAMESPACE, getTopicsOfNamespace=request)
    return command.SerializeToString()


def test_a_listing_request_may_have_ten_thousand_properties_and_no_more() -> None:
    # Given
    most = parse_command(with_properties(10_000))
    # Then
    assert len(most.getTopicsOfNamespace.properties) == 10_000
    with pytest.raises(RemoteProtocolError, match="a listing request with 10001 properties"):
        parse_command(with_properties(10_001))


def test_bytes_that_are_meant_to_be_bytes_may_be_anything() -> None:
    # Given
    body = connect()
    body.connect.auth_data = b"\xff\xfe"
    # When, Then
    assert parse_command(body.SerializeToString()).connect.auth_data == b"\xff\xfe"


# -- large frames ---------------------------------------------------------------------------------


class Announced:
    """A decoder whose large frames are kept or drained as told."""

    def __init__(self, *, keep: bool) -> None:
        self.seen: list[tuple[int, bytes]] = []
        self._keep = keep
        self.decoder = FrameDecoder(on_large_frame=self.announce)

    def announce(self, total_size: int, head: bytes) -> bool:
        self.seen.append((total_size, head))
        return self._keep


def test_a_large_frame_is_announced_before_its_body() -> None:
    # Given
    data = encode_command(error(7, "x" * 2_000))
    announced = Announced(keep=True)
    # When
    announced.decoder.feed(data[: 4 + 47])
    assert announced.decoder.next_frame() is None
    before = list(announced.seen)
    announced.decoder.feed(data[4 + 47 : 4 + 48])
    assert announced.decoder.next_frame() is None
    # Then
    assert before == []
    assert announced.seen == [(len(data) - 4, data[4:52])]
    announced.decoder.feed(data[52:])
    frame = announced.decoder.next_frame()
    assert frame is not None
    assert frame.command() == error(7, "x" * 2_000)
    assert len(announced.seen) == 1


def test_a_small_frame_is_not_announced() -> None:
    # Given
    announced = Announced(keep=False)
    message = "x" * (1_023 - 4 - len(error(7, "x" * 999).SerializeToString()) + 999)
    data = encode_command(error(7, message))
    # When
    announced.decoder.feed(data)
    # Then
    assert len(data) - 4 == 1_023
    assert announced.decoder.next_frame() is not None
    assert announced.seen == []


def test_a_drained_frame_is_never_held() -> None:
    # Given
    announced = Announced(keep=False)
    data = encode_command(error(7, "x" * 100_000))
    most = 0
    # When
    for start in range(0, len(data), 1_000):
        announced.decoder.feed(data[start : start + 1_000])
        assert announced.decoder.next_frame() is None
        most = max(most, announced.decoder.buffered_bytes)
    announced.decoder.feed(encode_command(success(8)))
    frame = announced.decoder.next_frame()
    # Then
    assert most == 0
    assert frame is not None
    assert frame.command() == success(8)


def test_a_frame_that_came_whole_is_drained_whole() -> None:
    # Given
    announced = Announced(keep=False)
    # When
    announced.decoder.feed(encode_command(error(7, "x" * 2_000)) + encode_command(success(8)))
    frame = announced.decoder.next_frame()
    # Then
    assert frame is not None
    assert frame.command() == success(8)
    assert announced.decoder.next_frame() is None


def test_a_large_frame_that_came_alone_and_whole_is_drained_too() -> None:
    # Given
    announced = Announced(keep=False)
    # When
    announced.decoder.feed(encode_command(error(7, "x" * 2_000)))
    # Then
    assert announced.decoder.next_frame() is None
    assert len(announced.seen) == 1
    assert announced.decoder.buffered_bytes == 0


def test_a_body_that_came_alone_is_not_taken_for_a_frame() -> None:
    # Given: a command's length is that of what comes behind it, as a frame's
    data, decoder = encode_command(success(8)), FrameDecoder()
    decoder.feed(data[:4])
    assert decoder.next_frame() is None
    # When
    decoder.feed(data[4:])
    # Then
    frame = decoder.next_frame()
    assert frame is not None
    assert frame.command() == success(8)


def test_a_frame_that_comes_byte_by_byte_is_kept_in_few_chunks() -> None:
    # Given
    frame = encode_command(pb.BaseCommand(type=pb.BaseCommand.PING, ping=pb.CommandPing()))
    body = (1_000).to_bytes(4, "big") + bytes(1_000)
    decoder = FrameDecoder()
    # When
    for index in range(len(body) - 1):
        decoder.feed(body[index : index + 1])
        assert decoder.next_frame() is None
    # Then
    assert len(decoder._chunks) < 260
    assert decoder.within_frame
    # When
    decoder.feed(body[-1:] + frame)
    # Then
    first = decoder.next_frame()
    assert first is not None
    assert first.body() == body[4:]
    assert decoder.next_frame() is not None
    assert not decoder.within_frame


LOOKUP_WITHOUT_ID = "ba01030a0178"
LOOKUP_OF_X = "ba01050a01781009"


@pytest.mark.parametrize(
    ("bodies", "refused"),
    [(LOOKUP_OF_X * 2, False), (LOOKUP_WITHOUT_ID + LOOKUP_OF_X, True)],
)
def test_as_shipped_each_of_two_bodies_must_be_whole(bodies: str, refused: bool) -> None:
    # Given
    command = bytes.fromhex("0817" + bodies)
    decoder = FrameDecoder()
    decoder.feed(struct.pack(">II", len(command) + 4, len(command)) + command)
    frame = decoder.next_frame()
    assert frame is not None
    # When / Then
    assert frame.command().lookupTopic.request_id == 9
    if not refused:
        assert parse_as_pulsar(frame.command_bytes()).lookupTopic.topic == "x"
        return
    with pytest.raises(RemoteProtocolError, match="lacks a required field"):
        parse_as_pulsar(frame.command_bytes())
