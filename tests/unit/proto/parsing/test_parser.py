"""Commands as read by both parsers, and malformed commands."""

import pytest
from google.protobuf.message import DecodeError

import proto.PulsarApi_pb2 as pb
from proto.errors import RemoteProtocolError
from proto.parsing.parser import parse_as_pulsar, parse_command, parse_from_client
from tests.unit.proto.test_frames import connect, get_topics

Type = pb.BaseCommand


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"\xff", "does not hold a protobuf command"),
        (b"", "unknown type or lacks a required field"),
        (b"\x08\xe7\x07", "unknown type or lacks a required field"),  # type 999
        (b"\x08\x0d\x6a\x00", "unknown type or lacks a required field"),  # SUCCESS without id
    ],
)
def test_an_invalid_command_is_refused(body: bytes, sentence: str) -> None:
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


def test_the_protobuf_parser_itself_refuses_text_that_is_not_utf8() -> None:
    """In the parser's only pass: a walk over the fields of a large command would block the event
    loop.
    """
    with pytest.raises(DecodeError):
        pb.BaseCommand().ParseFromString(broken(LISTING_REQUEST, b"!!"))


def with_properties(number: int) -> bytes:
    one = pb.KeyValue(key="k", value="v")
    request = pb.CommandGetTopicsOfNamespace(
        request_id=1, namespace="a/b", properties=[one] * number
    )
    command = pb.BaseCommand(type=Type.GET_TOPICS_OF_NAMESPACE, getTopicsOfNamespace=request)
    return command.SerializeToString()


def test_a_listing_request_may_have_at_most_ten_thousand_properties() -> None:
    most = parse_command(with_properties(10_000))
    assert len(most.getTopicsOfNamespace.properties) == 10_000
    with pytest.raises(RemoteProtocolError, match="a listing request has 10001 properties"):
        parse_command(with_properties(10_001))


def test_a_field_of_bytes_may_hold_invalid_utf8() -> None:
    body = connect()
    body.connect.auth_data = b"\xff\xfe"
    assert parse_command(body.SerializeToString()).connect.auth_data == b"\xff\xfe"


LOOKUP_WITHOUT_ID = "ba01030a0178"
LOOKUP_OF_X = "ba01050a01781009"


@pytest.mark.parametrize(
    ("bodies", "refused"),
    [(LOOKUP_OF_X * 2, False), (LOOKUP_WITHOUT_ID + LOOKUP_OF_X, True)],
)
def test_in_profile_pulsar_each_of_two_repeated_bodies_must_be_complete(
    bodies: str, refused: bool
) -> None:
    command = bytes.fromhex("0817" + bodies)
    assert parse_command(command).lookupTopic.request_id == 9
    if not refused:
        assert parse_as_pulsar(command).lookupTopic.topic == "x"
        return
    with pytest.raises(RemoteProtocolError, match="lacks a required field"):
        parse_as_pulsar(command)


def subscribing(**fields: object) -> bytes:
    asked = pb.CommandSubscribe(
        subscription="s", subType=pb.CommandSubscribe.Shared, consumer_id=1, request_id=1
    )
    asked.MergeFrom(pb.CommandSubscribe(**fields))  # type: ignore[arg-type]
    command = pb.BaseCommand(type=Type.SUBSCRIBE)
    command.subscribe.MergeFrom(asked)
    return command.SerializePartialToString()


def test_only_a_schema_may_make_a_client_command_large() -> None:
    schema = pb.Schema(name="s", schema_data=b" " * 1_000_000, type=pb.Schema.Json)
    assert parse_from_client(subscribing(topic="t", schema=schema)).subscribe.HasField("schema")
    with pytest.raises(RemoteProtocolError, match="field 1 has 1000000 bytes; only a schema may"):
        parse_from_client(subscribing(topic="/" * 1_000_000))
