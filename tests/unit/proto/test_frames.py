"""Frames of real clients and brokers, and malformed frames."""

import struct

import pytest

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
from proto.parsing.parser import parse_command

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


def test_the_connect_command_of_the_official_client_is_parsed() -> None:
    command = only_frame(bytes.fromhex(CONNECT))
    assert command.connect.client_version == "Pulsar-CPP-v4.2.0"
    assert command.connect.protocol_version == 20
    assert command.connect.auth_method_name == "none"
    assert command.connect.feature_flags.supports_auth_refresh


@pytest.mark.parametrize("recorded", [ONE_MESSAGE, BATCH])
def test_a_send_command_is_split_and_reassembled_unchanged(recorded: str) -> None:
    data = bytes.fromhex(recorded)
    command, tail = split_body(data[4:], len(data) - 4)
    (metadata_size,) = struct.unpack_from(">I", tail, 6)
    metadata, payload = tail[10 : 10 + metadata_size], tail[10 + metadata_size :]
    assert verify_checksum(tail)
    assert encode_payload_command(parse_command(command), metadata, payload) == data


def test_a_changed_payload_does_not_match_its_checksum() -> None:
    data = bytes.fromhex(ONE_MESSAGE)
    tail = split_body(data[4:], len(data) - 4)[1]
    assert not verify_checksum(tail[:-1] + b"x")
    assert verify_checksum(tail[6:])  # without checksum


@pytest.mark.parametrize("size", [2, 3, 5])
def test_a_truncated_checksum_does_not_match(size: int) -> None:
    assert not verify_checksum(b"\x0e\x01\x00\x00\x00\x00"[:size])


def test_a_frame_may_exceed_the_largest_message_by_at_most_10236_bytes() -> None:
    limit = DEFAULT_MAX_MESSAGE_BYTES + FRAME_PADDING_BYTES
    at_limit, above = FrameDecoder(), FrameDecoder()
    at_limit.feed(struct.pack(">I", limit))
    above.feed(struct.pack(">I", limit + 1))
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


# -- large frames ---------------------------------------------------------------------------------


class Announced:
    """A decoder whose large frames are kept or drained as scripted."""

    def __init__(self, *, keep: bool) -> None:
        self.seen: list[tuple[int, bytes]] = []
        self._keep = keep
        self.decoder = FrameDecoder(on_large_frame=self.announce)

    def announce(self, total_size: int, head: bytes) -> bool:
        self.seen.append((total_size, head))
        return self._keep


def test_a_large_frame_is_announced_before_its_body() -> None:
    data = encode_command(error(7, "x" * 2_000))
    announced = Announced(keep=True)
    announced.decoder.feed(data[: 4 + 47])
    assert announced.decoder.next_frame() is None
    before = list(announced.seen)
    announced.decoder.feed(data[4 + 47 : 4 + 48])
    assert announced.decoder.next_frame() is None
    assert before == []
    assert announced.seen == [(len(data) - 4, data[4:52])]
    announced.decoder.feed(data[52:])
    frame = announced.decoder.next_frame()
    assert frame is not None
    assert frame.command() == error(7, "x" * 2_000)
    assert len(announced.seen) == 1


def test_a_small_frame_is_not_announced() -> None:
    announced = Announced(keep=False)
    message = "x" * (1_023 - 4 - len(error(7, "x" * 999).SerializeToString()) + 999)
    data = encode_command(error(7, message))
    announced.decoder.feed(data)
    assert len(data) - 4 == 1_023
    assert announced.decoder.next_frame() is not None
    assert announced.seen == []


def test_a_drained_frame_is_never_buffered() -> None:
    announced = Announced(keep=False)
    data = encode_command(error(7, "x" * 100_000))
    most = 0
    for start in range(0, len(data), 1_000):
        announced.decoder.feed(data[start : start + 1_000])
        assert announced.decoder.next_frame() is None
        most = max(most, announced.decoder.buffered_bytes)
    announced.decoder.feed(encode_command(success(8)))
    frame = announced.decoder.next_frame()
    assert most == 0
    assert frame is not None
    assert frame.command() == success(8)


def test_a_large_frame_received_with_a_following_frame_is_drained_completely() -> None:
    announced = Announced(keep=False)
    announced.decoder.feed(encode_command(error(7, "x" * 2_000)) + encode_command(success(8)))
    frame = announced.decoder.next_frame()
    assert frame is not None
    assert frame.command() == success(8)
    assert announced.decoder.next_frame() is None


def test_a_large_frame_received_whole_and_alone_is_drained_completely() -> None:
    announced = Announced(keep=False)
    announced.decoder.feed(encode_command(error(7, "x" * 2_000)))
    assert announced.decoder.next_frame() is None
    assert len(announced.seen) == 1
    assert announced.decoder.buffered_bytes == 0


def test_a_body_received_separately_is_not_parsed_as_a_frame() -> None:
    # A command's length counts the following bytes, as a frame's does
    data, decoder = encode_command(success(8)), FrameDecoder()
    decoder.feed(data[:4])
    assert decoder.next_frame() is None
    decoder.feed(data[4:])
    frame = decoder.next_frame()
    assert frame is not None
    assert frame.command() == success(8)


def test_a_frame_received_byte_by_byte_is_kept_in_few_chunks() -> None:
    frame = encode_command(pb.BaseCommand(type=pb.BaseCommand.PING, ping=pb.CommandPing()))
    body = (1_000).to_bytes(4, "big") + bytes(1_000)
    decoder = FrameDecoder()
    for index in range(len(body) - 1):
        decoder.feed(body[index : index + 1])
        assert decoder.next_frame() is None
    assert len(decoder._chunks) < 260
    assert decoder.within_frame
    decoder.feed(body[-1:] + frame)
    first = decoder.next_frame()
    assert first is not None
    assert first.body() == body[4:]
    assert decoder.next_frame() is not None
    assert not decoder.within_frame
