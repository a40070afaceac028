"""Answers that carry an error, and commands without a body."""

from collections.abc import Callable

import pytest

import proto.PulsarApi_pb2 as pb
from proto.commands import error_command, lookup_failed, partitions_failed, with_body
from proto.errors import RemoteProtocolError
from proto.frames import encode_command

Type = pb.BaseCommand
ErrorBuilder = Callable[[int, pb.ServerError.ValueType, str], pb.BaseCommand]


def test_an_error_is_encoded_as_recorded() -> None:
    command = error_command(7, pb.TopicNotFound, "no")
    assert encode_command(command).hex() == "000000100000000c080e72080807100b1a026e6f"


def test_a_failed_lookup_has_its_own_response() -> None:
    command = lookup_failed(7, pb.ServiceNotReady, "later")
    answer = command.lookupTopicResponse
    assert command.type == Type.LOOKUP_RESPONSE
    assert (answer.request_id, answer.error, answer.message) == (7, pb.ServiceNotReady, "later")
    assert answer.response == pb.CommandLookupTopicResponse.Failed


def test_a_failed_partition_query_has_its_own_response() -> None:
    command = partitions_failed(7, pb.ServiceNotReady, "later")
    answer = command.partitionMetadataResponse
    assert command.type == Type.PARTITIONED_METADATA_RESPONSE
    assert (answer.request_id, answer.error, answer.message) == (7, pb.ServiceNotReady, "later")
    assert answer.response == pb.CommandPartitionedTopicMetadataResponse.Failed


def test_a_command_without_its_body_is_a_protocol_error_of_the_peer() -> None:
    bare = pb.BaseCommand(type=Type.LOOKUP)
    whole = pb.BaseCommand(type=Type.PING, ping=pb.CommandPing())
    assert with_body(whole, "ping") is whole
    with pytest.raises(RemoteProtocolError, match=r"^LOOKUP without its body$"):
        with_body(bare, "lookupTopic")


@pytest.mark.parametrize("build", [error_command, lookup_failed, partitions_failed])
def test_an_error_command_has_a_maximum_size(build: ErrorBuilder) -> None:
    command = build(7, pb.InvalidTopicName, "Invalid topic name: " + "\U0001f600" * 1_000_000)
    assert len(encode_command(command)) < 900
    assert b"... (1000020 characters)" in command.SerializeToString()
