"""Which sizes of commands are parsed, by type."""

import pytest

import proto.PulsarApi_pb2 as pb
from proto.errors import CommandTooLargeError
from proto.parsing.command_bounds import (
    COMMAND_BYTES,
    SCHEMA_BYTES,
    check_command_size,
    check_first_frame,
    type_name,
)
from tests.support.processes.commands import TYPES

Type = pb.BaseCommand
WITH_SCHEMA = {Type.PRODUCER, Type.SUBSCRIBE, Type.GET_OR_CREATE_SCHEMA}


@pytest.mark.parametrize("kind", [*TYPES, 99, None], ids=type_name)
def test_only_an_ack_or_a_command_with_a_schema_may_exceed_64_kib(kind: int | None) -> None:
    limit = 65_536 + (SCHEMA_BYTES if kind in WITH_SCHEMA else 0)
    limit = 262_144 if kind == Type.ACK else limit
    check_command_size(kind, limit)
    with pytest.raises(CommandTooLargeError) as caught:
        check_command_size(kind, limit + 1)
    assert (caught.value.size_bytes, caught.value.limit_bytes) == (limit + 1, limit)


def test_the_refusal_names_the_command_and_both_sizes() -> None:
    with pytest.raises(
        CommandTooLargeError, match="ACK of 262145 bytes, at most 262144 are parsed"
    ):
        check_command_size(Type.ACK, 262_145)


def test_the_largest_ack_of_the_official_clients_by_default_is_within_the_bound() -> None:
    # 1,000 messages, and 1,000 batches of 1,000 messages with one unacknowledged
    ack = pb.CommandAck(consumer_id=2**63, ack_type=pb.CommandAck.Individual, request_id=2**63)
    for _ in range(1_000):
        ack.message_id.add(ledgerId=2**40, entryId=2**31, partition=1_000)
        ack.message_id.add(
            ledgerId=2**40, entryId=2**31, partition=1_000, batch_size=1_000, ack_set=[-1] * 16
        )
    size_bytes = pb.BaseCommand(type=Type.ACK, ack=ack).ByteSize()
    assert size_bytes > 200_000
    check_command_size(Type.ACK, size_bytes)


def test_a_frame_before_connect_is_limited_in_size() -> None:
    check_first_frame(COMMAND_BYTES)
    with pytest.raises(CommandTooLargeError, match="a frame before CONNECT of 65537 bytes"):
        check_first_frame(COMMAND_BYTES + 1)


@pytest.mark.parametrize(
    ("kind", "name"),
    [(Type.ACK, "ACK"), (99, "a command of type 99"), (None, "a command of unknown type")],
)
def test_a_command_of_unknown_type_has_a_name(kind: int | None, name: str) -> None:
    assert type_name(kind) == name
