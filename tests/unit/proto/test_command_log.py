"""Commands as lines of the log."""

import logging

import pytest

import proto.PulsarApi_pb2 as pb
from proto.command_log import DECODED_BYTES, MAX_LINE_CHARACTERS, described, sent
from proto.frames import encode_command, encode_payload_command

GET_TOPICS = pb.BaseCommand(
    type=pb.BaseCommand.GET_TOPICS_OF_NAMESPACE,
    getTopicsOfNamespace=pb.CommandGetTopicsOfNamespace(
        request_id=7,
        namespace="public/default",
        topics_pattern="a.*",
        mode=pb.CommandGetTopicsOfNamespace.ALL,
        properties=[pb.KeyValue(key="team", value="red"), pb.KeyValue(key="tier", value="1")],
    ),
)


def line_of(frame: bytes) -> str:
    return described(len(frame) - 4, frame[4:])


def listing(names: int) -> bytes:
    response = pb.CommandGetTopicsOfNamespaceResponse(
        request_id=7, topics=[f"persistent://a/b/{n:04}" for n in range(names)], topics_hash="x"
    )
    kind = pb.BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE
    return encode_command(pb.BaseCommand(type=kind, getTopicsOfNamespaceResponse=response))


def test_a_command_is_described_with_its_size_and_fields() -> None:
    frame = encode_command(GET_TOPICS)
    assert line_of(frame) == (
        f"GET_TOPICS_OF_NAMESPACE ({len(frame)} bytes) request_id=7 namespace='public/default' "
        "mode=ALL topics_pattern='a.*' properties=[2: {key='team' value='red'}, ...]"
    )


def test_a_list_is_described_by_its_length_and_first_element() -> None:
    frame = listing(3)
    assert line_of(frame) == (
        f"GET_TOPICS_OF_NAMESPACE_RESPONSE ({len(frame)} bytes) request_id=7 "
        "topics=[3: 'persistent://a/b/0000', ...] topics_hash='x'"
    )


def test_a_large_response_is_described_by_name_size_and_request_id() -> None:
    frame = listing(10_000)
    assert described(len(frame) - 4, frame[4:DECODED_BYTES]) == (
        f"GET_TOPICS_OF_NAMESPACE_RESPONSE ({len(frame)} bytes) request_id=7 ..."
    )


def test_long_texts_are_cut_and_control_characters_escaped() -> None:
    command = pb.BaseCommand()
    command.CopyFrom(GET_TOPICS)
    command.getTopicsOfNamespace.namespace = "line\n" + "x" * 10_000
    line = line_of(encode_command(command))
    assert "namespace='line\\n" + "x" * 75 + "...'" in line


def test_a_line_has_a_maximum_length() -> None:
    subscribe = pb.CommandSubscribe(
        topic="t" * 5_000, subscription="s", subType=0, consumer_id=1, request_id=1,
        metadata=[pb.KeyValue(key="k" * 500, value="v" * 500)], consumer_name="n" * 500,
    )  # fmt: skip
    subscribe.keySharedMeta.keySharedMode = pb.STICKY
    for _ in range(9):
        subscribe.keySharedMeta.hashRanges.add(start=1, end=2)
    subscribe.schema.name, subscribe.schema.schema_data = "s" * 500, b"x"
    subscribe.schema.type = pb.Schema.Json
    subscribe.schema.properties.add(key="k" * 500, value="v" * 500)
    line = line_of(
        encode_command(pb.BaseCommand(type=pb.BaseCommand.SUBSCRIBE, subscribe=subscribe))
    )
    assert MAX_LINE_CHARACTERS <= len(line) <= MAX_LINE_CHARACTERS + len("...")


def test_authentication_data_and_payloads_are_not_logged() -> None:
    connect = pb.CommandConnect(
        client_version="c", auth_method_name="token", auth_data=b"s3cret",
        original_auth_data="s3cret", original_auth_method="token",
    )  # fmt: skip
    send = pb.CommandSend(producer_id=1, sequence_id=2)
    challenge = pb.CommandAuthResponse(response=pb.AuthData(auth_data=b"s3cret"))
    frames = (
        encode_command(pb.BaseCommand(type=pb.BaseCommand.CONNECT, connect=connect)),
        encode_payload_command(
            pb.BaseCommand(type=pb.BaseCommand.SEND, send=send), b"m", b"s3cret"
        ),
        encode_command(pb.BaseCommand(type=pb.BaseCommand.AUTH_RESPONSE, authResponse=challenge)),
    )
    lines = [line_of(frame) for frame in frames]
    assert "s3cret" not in "".join(lines)
    assert "auth_data=(6 bytes) auth_method_name='token' original_auth_data=(hidden)" in lines[0]
    assert lines[1] == f"SEND ({len(frames[1])} bytes) producer_id=1 sequence_id=2"


def test_credentials_in_a_url_are_not_logged() -> None:
    connect = pb.CommandConnect(
        client_version="c", proxy_to_broker_url="pulsar://" + "u" * 90 + ":s3cret@host:6650"
    )
    found = pb.CommandLookupTopicResponse(
        request_id=1, brokerServiceUrl="pulsar://u:s3cret@host:1", proxy_through_service_url=True
    )
    kind = pb.BaseCommand.LOOKUP_RESPONSE
    first = line_of(encode_command(pb.BaseCommand(type=pb.BaseCommand.CONNECT, connect=connect)))
    second = line_of(encode_command(pb.BaseCommand(type=kind, lookupTopicResponse=found)))
    assert "proxy_to_broker_url='pulsar://(hidden)@host:6650'" in first
    assert "brokerServiceUrl='pulsar://(hidden)@host:1'" in second
    assert "proxy_through_service_url=true" in second


def test_application_properties_are_logged_without_their_values() -> None:
    token = [pb.KeyValue(key="token", value="s3cret")]
    schema = pb.Schema(name="s", schema_data=b"x", type=pb.Schema.String, properties=token)
    lookup = pb.CommandLookupTopic(topic="t", request_id=1, properties=token)
    producer = pb.CommandProducer(
        topic="t", producer_id=1, request_id=1, metadata=token, schema=schema
    )  # fmt: skip
    subscribe = pb.CommandSubscribe(
        topic="t", subscription="s", subType=0, consumer_id=1, request_id=1,
        metadata=token, subscription_properties=token,
    )  # fmt: skip
    lines = [
        line_of(encode_command(pb.BaseCommand(type=pb.BaseCommand.LOOKUP, lookupTopic=lookup))),
        line_of(encode_command(pb.BaseCommand(type=pb.BaseCommand.PRODUCER, producer=producer))),
        line_of(encode_command(pb.BaseCommand(type=pb.BaseCommand.SUBSCRIBE, subscribe=subscribe))),
    ]
    assert "s3cret" not in "".join(lines)
    assert "metadata=[1: {key='token' value=(hidden)}]" in lines[1]


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (b"", "a command of unknown type (4 bytes)"),
        (b"\0\0\0", "a command of unknown type (7 bytes)"),
        (b"\0\0\0\1\xff", "no command (9 bytes)"),
        (b"\0\0\0\0", "a command of unknown type (8 bytes)"),
        (b"\0\0\0\2\x08\x7f", "a command of unknown type (10 bytes)"),
        (b"\xff\xff\xff\xff\x08\x7f", "a command of type 127 (10 bytes)"),
        (b"\xff\xff\xff\xff\x08\x12", "PING (10 bytes)"),
    ],
)
def test_bytes_that_are_no_command_are_described_by_size(body: bytes, line: str) -> None:
    assert described(len(body), body) == line


def test_frames_sent_together_are_logged_individually_up_to_a_bound(caplog) -> None:
    ping = encode_command(pb.BaseCommand(type=pb.BaseCommand.PING, ping=pb.CommandPing()))
    many = ping * 2_000
    with caplog.at_level(logging.DEBUG, "proto.command_log"):
        sent("peer", [memoryview(ping[:3]), ping[3:] + ping], 2 * len(ping), {}, in_a_pipe=False)
        sent("peer", [many], len(many), {}, in_a_pipe=False)
        sent("peer", [b"x"], 1, {}, in_a_pipe=True)
    assert caplog.messages[:2] == [f"sent to peer: PING ({len(ping)} bytes)"] * 2
    one_by_one = len(caplog.messages) - 4
    assert one_by_one == DECODED_BYTES // len(ping)
    assert caplog.messages[-2] == f"sent to peer: {len(many) - one_by_one * len(ping)} bytes more"
    assert caplog.messages[-1] == "sent to peer: 1 bytes of a pipe"


def test_an_unknown_authentication_method_is_not_logged() -> None:
    connect = pb.CommandConnect(client_version="c", auth_method_name="planted" * 3)
    line = line_of(encode_command(pb.BaseCommand(type=pb.BaseCommand.CONNECT, connect=connect)))
    assert "auth_method_name=(21 characters)" in line
