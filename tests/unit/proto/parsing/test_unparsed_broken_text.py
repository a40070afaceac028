"""Text that is not UTF-8 is read as Java does; valid text is unchanged."""

import pytest

import proto.PulsarApi_pb2 as pb
from proto.errors import RemoteProtocolError
from proto.frames import Frame
from proto.parsing.parser import parse_as_pulsar
from proto.parsing.unparsed import MAX_MENDED_BYTES, MOST_MENDED_FIELDS, mended
from proto.parsing.varint import encode_varint
from tests.support.peers.raw_peer import lookup_command, topics_command

COMMAND = pb.BaseCommand.DESCRIPTOR


def with_broken_text(topic: bytes, size: int = 0) -> bytes:
    return (
        lookup_command(7, "x" * (size or len(topic)))
        .SerializeToString()
        .replace(b"x" * len(topic), topic)
    )


def test_invalid_utf8_becomes_a_replacement_character() -> None:
    read = pb.BaseCommand.FromString(mended(with_broken_text(b"a\xffb\xe3\x81"), COMMAND))
    assert read == lookup_command(7, "a\ufffdb\ufffd")


def test_valid_text_is_unchanged() -> None:
    properties = [pb.KeyValue(key="k", value="ü")]
    data = topics_command(2**63, "t/n", mode=2, properties=properties).SerializeToString()
    assert mended(data, COMMAND) == data


@pytest.mark.parametrize(
    "data",
    [
        b"\x08",
        b"\xff" * 12,
        b"\x0b\x0c",
        b"\xba\x01\x7f\xff",
        with_broken_text(b"\xff") + b"\x98\x06" + b"\xff" * 10 + b"\x01",
        with_broken_text(b"\xff", MAX_MENDED_BYTES),
    ],
    ids=["cut", "endless", "group", "too short", "varint of 11 bytes", "too large"],
)
def test_a_malformed_or_too_large_message_is_unchanged(data: bytes) -> None:
    assert mended(data, COMMAND) == data


def test_a_message_with_too_many_fields_is_unchanged() -> None:
    unknown = b"\x78\x01"
    for count, is_mended in ((MOST_MENDED_FIELDS - 4, True), (MOST_MENDED_FIELDS, False)):
        data = with_broken_text(b"\xff") + unknown * count
        assert (mended(data, COMMAND) != data) is is_mended


@pytest.mark.parametrize(("depth", "is_mended"), [(50, True), (600, False)])
def test_a_message_nested_too_deep_is_unchanged(depth: int, is_mended: bool) -> None:
    nested = b""
    for number in (*[7] * depth, 3, COMMAND.fields_by_name["ack"].number):
        nested = bytes((number << 3 | 2,)) + encode_varint(len(nested)) + nested
    data = with_broken_text(b"\xff") + nested
    assert (mended(data, COMMAND) != data) is is_mended


def framed(data: bytes) -> Frame:
    return Frame(len(data) + 4, [memoryview(len(data).to_bytes(4, "big") + data)])


def test_in_profile_pulsar_a_group_is_refused() -> None:
    frame = framed(lookup_command(7, "x").SerializeToString() + b"\xc3\x3e\xc4\x3e")
    assert frame.command() is not None
    with pytest.raises(RemoteProtocolError, match="group"):
        parse_as_pulsar(frame.command_bytes())


def test_in_profile_pulsar_fields_of_a_large_command_are_not_scanned_a_second_time() -> None:
    # Given a command with so many unknown fields that objects for them would block the loop
    group, unknown = b"\xc3\x3e\xc4\x3e", b"\xf8\x3f\x01"
    data = lookup_command(7, "x").SerializeToString() + group + unknown * (MAX_MENDED_BYTES // 3)
    assert parse_as_pulsar(framed(data).command_bytes()).lookupTopic.topic == "x"


@pytest.mark.parametrize("again", [b"\x0a\x00", b"\x91\x01" + b"\xff" * 8])
def test_in_profile_pulsar_a_repeated_field_of_another_wire_type_is_unknown(again: bytes) -> None:
    # Given a PING with the type repeated as bytes, or the body repeated as a number
    data = b"\x08\x92\x00" + again + b"\x92\x01\x00"
    assert parse_as_pulsar(framed(data).command_bytes()).type == pb.BaseCommand.PING


def test_in_profile_pulsar_broken_text_in_a_frame_is_mended() -> None:
    frame = framed(with_broken_text(b"\xff"))
    read = parse_as_pulsar(frame.command_bytes())
    assert read.lookupTopic.topic == "\ufffd"
    with pytest.raises(RemoteProtocolError):
        frame.command()
