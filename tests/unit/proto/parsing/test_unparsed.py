"""The fields of a message, unparsed."""

import pytest

import proto.PulsarApi_pb2 as pb
from proto.errors import RemoteProtocolError
from proto.parsing.unparsed import MAX_FIELDS_PASSED, check_bodies, fields


@pytest.mark.parametrize(
    ("message", "found"),
    [
        (b"", []),
        (b"\x08\x07", [(1, 7)]),
        (b"\x0a\x01x\x10\x05", [(1, b"x"), (2, 5)]),
        (b"\x09" + bytes(8) + b"\x10\x05", [(1, bytes(8)), (2, 5)]),
        (b"\x0d" + bytes(4) + b"\x10\x05", [(1, bytes(4)), (2, 5)]),
    ],
)
def test_fields_of_any_wire_type_are_read_in_order(
    message: bytes, found: list[tuple[int, int | bytes]]
) -> None:
    assert [(one.number, one.value) for one in fields(memoryview(message))] == found


@pytest.mark.parametrize("passed", [MAX_FIELDS_PASSED - 1, MAX_FIELDS_PASSED])
def test_bodies_behind_many_fields_are_not_checked(passed: int) -> None:
    incomplete = bytes((pb.BaseCommand.DESCRIPTOR.fields_by_name["producer"].number << 3 | 2, 0))
    message = b"\x08\x02" * passed + incomplete
    if passed == MAX_FIELDS_PASSED:
        check_bodies(message)
        return
    with pytest.raises(RemoteProtocolError, match="lacks a required field"):
        check_bodies(message)


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        (b"\x80", "a varint is cut off"),
        (b"\x0a\x02x", "a field is longer than its command"),
        (b"\x09\x00", "a field is longer than its command"),
        (b"\x0b\x0c", "a field of the wire type 3"),
    ],
)
def test_malformed_protobuf_is_a_protocol_error_of_the_peer(message: bytes, sentence: str) -> None:
    with pytest.raises(RemoteProtocolError, match=sentence):
        list(fields(memoryview(message)))
