"""Commands that would block the event loop are refused before parsing and before their body."""

import logging
import struct

import pytest

import proto.PulsarApi_pb2 as pb
from proto.parsing.command_bounds import COMMAND_BYTES, LARGER_COMMANDS, SCHEMA_BYTES
from proto.parsing.varint import encode_varint
from tests.support.peers.frames import frame
from tests.support.peers.raw_peer import connect_command, lookup_command
from tests.support.processes.cluster import cluster, topic_names
from tests.support.processes.commands import type_name

Type = pb.BaseCommand
NAMES = topic_names("public/default", 3)
TOPICS = {"public/default": NAMES}
ROLES = pytest.mark.parametrize("role", ["broker", "proxy"])
PROFILES = pytest.mark.parametrize("profile", ["pulsar", "floodgate"])
NO_PROTOBUF = b"\xff" * 100
SERVED = [
    Type.PING,
    Type.LOOKUP,
    Type.PARTITIONED_METADATA,
    Type.GET_TOPICS_OF_NAMESPACE,
    Type.ACK,
    Type.WATCH_TOPIC_LIST,
]


def beginning(kind: int, command_bytes: int, payload_bytes: int = 0) -> bytes:
    """Return the first hundred bytes of a frame with a command of a type and size."""
    lengths = struct.pack(">II", 4 + command_bytes + payload_bytes, command_bytes)
    return lengths + b"\x08" + encode_varint(kind) + NO_PROTOBUF[:90]


def unparsable(kind: int) -> bytes:
    """Return a whole frame with a valid type and invalid protobuf behind it."""
    command = b"\x08" + encode_varint(kind) + NO_PROTOBUF
    return struct.pack(">II", 4 + len(command), len(command)) + command


@PROFILES
@ROLES
@pytest.mark.parametrize("kind", [Type.CONNECT, Type.PING, Type.ACK], ids=type_name)
async def test_before_connect_an_oversized_frame_closes_before_its_body_arrives(
    role: str, profile: str, kind: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with cluster(TOPICS, profile) as parts:
        stranger = await parts.stranger(role)
        await stranger.send_bytes(beginning(kind, COMMAND_BYTES - 3))
        assert await stranger.rest() == b""
        assert "a frame before CONNECT of 65537 bytes, at most 65536 are parsed" in caplog.text
        assert parts.part(role).flow.totals.oversized_commands == 1


@PROFILES
@ROLES
@pytest.mark.parametrize("kind", [Type.ACK, Type.LOOKUP, Type.SEND, Type.PRODUCER], ids=type_name)
async def test_before_connect_illegal_commands_close_unparsed(role, profile, kind, caplog) -> None:
    caplog.set_level(logging.INFO)
    async with cluster(TOPICS, profile) as parts:
        stranger = await parts.stranger(role)
        await stranger.send_bytes(unparsable(kind))
        assert await stranger.rest() == b""
        assert f"{type_name(kind)} is not legal before CONNECT" in caplog.text


@ROLES
async def test_a_connect_of_64_kib_is_accepted(role: str) -> None:
    async with cluster(TOPICS) as parts:
        stranger = await parts.stranger(role)
        connect = connect_command()
        connect.connect.auth_data = bytes(COMMAND_BYTES - 100)
        connect.connect.auth_data += bytes(COMMAND_BYTES + 4 - len(frame(connect)))
        assert len(frame(connect)) == COMMAND_BYTES + 4
        await stranger.send(connect)
        assert (await stranger.command()).type == Type.CONNECTED


@ROLES
@pytest.mark.parametrize("kind", SERVED, ids=type_name)
async def test_a_command_above_its_size_limit_closes_before_its_body_arrives(
    role: str, kind: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with cluster(TOPICS) as parts:
        peer = await parts.peer(role)
        limit = LARGER_COMMANDS.get(kind, COMMAND_BYTES)
        await peer.send_bytes(beginning(kind, limit + 1))
        assert await peer.rest() == b""
        sentence = f"{type_name(kind)} of {limit + 1} bytes, at most {limit} are parsed"
        assert sentence in caplog.text
        assert parts.part(role).flow.totals.oversized_commands == 1


@ROLES
async def test_profile_pulsar_accepts_a_command_above_64_kib(role: str) -> None:
    async with cluster(TOPICS, "pulsar") as parts:
        peer = await parts.peer(role)
        command = lookup_command(1, NAMES[0])
        command.lookupTopic.original_auth_data = "x" * COMMAND_BYTES
        await peer.send(command)
        assert (await peer.command()).lookupTopicResponse.request_id == 1


@ROLES
async def test_a_payload_does_not_count_towards_the_size_of_its_command(role: str) -> None:
    async with cluster(TOPICS) as parts:
        peer = await parts.peer(role)
        ping, payload = frame(pb.BaseCommand(type=Type.PING, ping=pb.CommandPing())), bytes(300_000)
        size = struct.pack(">I", len(ping) - 4 + len(payload))
        await peer.send_bytes(size + ping[4:] + payload)
        assert (await peer.command()).type == Type.PONG


@PROFILES
async def test_a_large_schema_with_invalid_protobuf_closes_the_connection(profile: str) -> None:
    """With 100,000 properties, the last of them invalid protobuf."""
    async with cluster(TOPICS, profile) as parts:
        peer = await parts.peer("broker")
        schema = b"\x2a\x08\x0a\x02ab\x12\x02cd" * (SCHEMA_BYTES // 10) + NO_PROTOBUF
        body = b"\x0a\x01t\x10\x01\x18\x07" + b"\x3a" + encode_varint(len(schema)) + schema
        command = b"\x08\x05\x2a" + encode_varint(len(body)) + body
        await peer.send_bytes(struct.pack(">II", len(command) + 4, len(command)) + command)
        assert await peer.rest() == b""


@pytest.mark.parametrize("where", ["metadata", "properties of the schema"])
async def test_a_command_with_over_10000_fields_closes_a_connection(where: str, caplog) -> None:
    caplog.set_level(logging.INFO)
    asked = pb.CommandProducer(topic="t", producer_id=1, request_id=7)
    many = [pb.KeyValue(key="a", value="b")] * 60_000
    if where == "metadata":
        asked.metadata.extend(many)
    else:
        asked.schema.name, asked.schema.schema_data, asked.schema.type = "s", b"", pb.Schema.String
        asked.schema.properties.extend(many)
    async with cluster(TOPICS) as parts:
        peer = await parts.peer("broker")
        await peer.send(pb.BaseCommand(type=Type.PRODUCER, producer=asked))
        assert await peer.rest() == b""
        assert "a command with more than 10000 fields" in caplog.text


async def test_a_command_with_two_types_is_handled_as_its_last_type() -> None:
    """Of a field given twice the last value counts: first LOOKUP, then PRODUCER."""
    async with cluster(TOPICS) as parts:
        peer = await parts.peer("broker")
        command = b"\x08\x17" + b"\x08\x05" + b"\x2a\x07\x0a\x01t\x10\x01\x18\x07"
        await peer.send_bytes(struct.pack(">II", len(command) + 4, len(command)) + command)
        assert (await peer.command()).producer_success.request_id == 7
