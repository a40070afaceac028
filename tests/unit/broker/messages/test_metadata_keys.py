"""The key of a message, and its place in a chunked message."""

from __future__ import annotations

import struct

import pytest

import proto.PulsarApi_pb2 as pb
from broker.messages.metadata import chunk_of, key_of
from tests.support.messages.producing import entry_bytes


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({}, b"p-7"),
        ({"partition_key": "k"}, b"k"),
        ({"partition_key": ""}, b""),
        ({"partition_key": "AAE=", "partition_key_b64_encoded": True}, b"\0\1"),
        ({"partition_key": "no base64!", "partition_key_b64_encoded": True}, b"no base64!"),
        ({"partition_key": "k", "ordering_key": b"o\xff"}, b"o\xff"),
        ({"partition_key": "k", "ordering_key": b""}, b""),
    ],
)
def test_the_ordering_key_precedes_the_partition_key_and_the_sequence_id(fields, key) -> None:
    assert key_of(entry_bytes(sequence_id=7, **fields)) == key


@pytest.mark.parametrize("data", [b"", b"\0\0\0\xff", b"\0\0\0\1\xff"])
def test_the_key_of_an_unreadable_message_is_none_key(data: bytes) -> None:
    assert key_of(data) == b"NONE_KEY"


def test_unreadable_properties_do_not_hide_the_key() -> None:
    odd = pb.MessageMetadata(producer_name="p", sequence_id=7, publish_time=1, partition_key="k")
    head = odd.SerializeToString() + b"\x22\x02\x0a\xff"
    assert key_of(struct.pack(">I", len(head)) + head) == b"k"


def test_the_place_of_a_chunk_has_a_short_hash_of_its_message_id() -> None:
    for number in (0, 1):
        chunk = chunk_of(entry_bytes(uuid="u" * 10_000, chunk_id=number, num_chunks_from_msg=2))
        assert chunk is not None
        assert (len(chunk.uuid), chunk.number, chunk.is_last) == (16, number, number == 1)


@pytest.mark.parametrize("data", [b"", b"\x0e\x01", b"\xff" * 20, b"\x00\x00\x00\x02\xd2\x01"])
def test_an_entry_without_readable_chunk_fields_is_no_chunk(data: bytes) -> None:
    assert chunk_of(data) is None
