"""The request id of an unparsed command."""

import pytest

import proto.PulsarApi_pb2 as pb
from proto.errors import RemoteProtocolError
from proto.parsing.unparsed import MAX_FIELDS_PASSED, find_field, request_id_in
from tests.support.processes.commands import TYPES, complete_command, type_name

Type = pb.BaseCommand
WITH_REQUEST_ID = [
    kind
    for kind in TYPES
    if (body := pb.BaseCommand.DESCRIPTOR.fields_by_number[kind].message_type) is not None
    and "request_id" in body.fields_by_name
]


@pytest.mark.parametrize("kind", TYPES, ids=type_name)
def test_the_request_id_is_what_the_parser_finds(kind: int) -> None:
    command = complete_command(kind)
    body = getattr(command, pb.BaseCommand.DESCRIPTOR.fields_by_number[kind].name)
    if kind in WITH_REQUEST_ID:
        body.request_id = 2**64 - 1
    found = request_id_in(kind, command.SerializeToString())
    assert found == (2**64 - 1 if kind in WITH_REQUEST_ID else None)


def test_another_commands_body_is_none() -> None:
    command = complete_command(Type.PRODUCER, Type.SUBSCRIBE)
    assert request_id_in(Type.PRODUCER, command.SerializeToString()) is None


@pytest.mark.parametrize(
    ("message", "number", "value"),
    [
        (b"", 1, None),
        (b"\x08\x07", 1, 7),
        (b"\x08\x07", 2, None),
        (b"\x0a\x01x\x10\x05", 2, 5),
        (b"\x0a\x01x", 1, b"x"),
        (b"\x09" + bytes(8) + b"\x10\x05", 2, 5),
        (b"\x0d" + bytes(4) + b"\x10\x05", 2, 5),
    ],
)
def test_a_field_is_found_behind_others_of_any_kind(
    message: bytes, number: int, value: int | bytes | None
) -> None:
    assert find_field(memoryview(message), number) == value


@pytest.mark.parametrize("passed", [MAX_FIELDS_PASSED - 1, MAX_FIELDS_PASSED])
def test_only_so_many_fields_are_passed(passed: int) -> None:
    message = b"\x0a\x00" * passed + b"\x10\x05"
    assert find_field(memoryview(message), 2) == (5 if passed < MAX_FIELDS_PASSED else None)


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        (b"\x80", "a varint is cut off"),
        (b"\x0a\x02x", "a field is longer than its command"),
        (b"\x09\x00", "a field is longer than its command"),
        (b"\x0b\x0c", "a field of the wire type 3"),
    ],
)
def test_what_is_no_protobuf_is_the_peers_fault(message: bytes, sentence: str) -> None:
    with pytest.raises(RemoteProtocolError, match=sentence):
        find_field(memoryview(message), 2)
