import struct
import zlib
from dataclasses import replace

import pytest

import proto.PulsarApi_pb2 as pb
from client.messages.entry import (
    LARGE_METADATA_BYTES,
    MENDED_BYTES,
    MOST_BYTES_AT_ONCE,
    MOST_FIELDS,
    MOST_MENDED_BYTES,
)
from client.messages.enums import CompressionType
from client.messages.errors import BrokenEntryError
from client.messages.outgoing import OutgoingMessage, SendingProducer, message_entry
from tests.support.messages.entries import (
    NOW,
    PRODUCER,
    SOURCE,
    batch_of,
    entry_bytes,
    plain,
    received,
)
from tests.support.peers.frames import with_checksum

Reason = pb.CommandAck
# A batch of "a" (key x, property k=v) and "bb", as sent by the official Python client.
OFFICIAL_BATCH = bytes.fromhex(
    "0e018ccec86a000000120a027032100018beb9bcdb9f343201785802"
    "0000000f0a060a016b12017612017818014000610000000418024001"
    "6262"
)


def metadata(**fields: object) -> pb.MessageMetadata:
    return pb.MessageMetadata(producer_name="p", sequence_id=0, publish_time=NOW, **fields)


def single(payload: bytes, **fields: object) -> bytes:
    """Return a message of a batch."""
    fields = {"payload_size": len(payload)} | fields
    head = pb.SingleMessageMetadata(**fields).SerializePartialToString()
    return struct.pack(">I", len(head)) + head + payload


def reason_of(data: bytes, **options: object) -> int:
    """Return why an entry cannot be read."""
    with pytest.raises(BrokenEntryError) as caught:
        received(data, **options).take()
    return caught.value.validation_error


def test_a_batch_of_the_official_client_is_read() -> None:
    first, second = received(OFFICIAL_BATCH).take()
    assert (first.data(), second.data()) == (b"a", b"bb")
    assert (first.properties(), first.partition_key()) == ({"k": "v"}, "x")
    assert (second.properties(), second.partition_key()) == ({}, "")
    assert [one.sequence_id() for one in (first, second)] == [0, 1]
    assert [one.message_id().batch_index() for one in (first, second)] == [0, 1]
    assert second.message_id().batch_size == 2
    assert second.producer_name() == "p2"


def test_a_message_in_no_batch_has_no_batch_index() -> None:
    entry = received(message_entry(OutgoingMessage(b"x", 7), PRODUCER, NOW), entry_id=9)
    (message,) = entry.take()
    assert message.message_id().entry == (1, 9)
    assert message.message_id().batch_index() == -1
    assert message.sequence_id() == 7
    assert entry.left == 0


def test_what_the_broker_says_of_an_entry_is_passed_over() -> None:
    said = pb.BrokerEntryMetadata(index=5).SerializeToString()
    data = b"\x0e\x02" + struct.pack(">I", len(said)) + said + OFFICIAL_BATCH
    assert [one.data() for one in received(data).take()] == [b"a", b"bb"]


def test_an_entry_without_a_checksum_is_read() -> None:
    assert [one.data() for one in received(OFFICIAL_BATCH[6:]).take()] == [b"a", b"bb"]


def test_a_batch_is_taken_step_by_step() -> None:
    entry = received(batch_of(plain(5)))
    steps = []
    while entry.left:
        steps.append([one.data() for one in entry.take(2)])
    assert steps == [[b"0", b"1"], [b"2", b"3"], [b"4"]]


@pytest.mark.parametrize(
    ("ack_set", "left"),
    [([], {0, 1, 2}), ([0b101], {0, 2}), ([0], set()), ([-1], {0, 1, 2}), ([0b010, 7], {1})],
)
def test_messages_that_were_acknowledged_are_left_out(ack_set: list[int], left: set[int]) -> None:
    entry = received(batch_of(plain(3)), ack_set=ack_set)
    messages = entry.take()
    assert {one.batch_index for one in messages} == left
    assert entry.left == 0


def test_what_an_ack_set_does_not_reach_was_acknowledged() -> None:
    entry = received(batch_of(plain(70)), ack_set=[-1])
    assert [one.batch_index for one in entry.take()] == list(range(64))


def test_messages_that_compaction_removed_are_left_out() -> None:
    payload = single(b"", compacted_out=True) + single(b"x")
    entry = received(with_checksum(metadata(num_messages_in_batch=2), payload))
    (message,) = entry.take()
    assert (message.data(), message.batch_index) == (b"x", 1)


def test_texts_that_are_not_utf8_are_mended() -> None:
    head = b"\x12\x02\xff\xfex\x18\x01".replace(b"x", b"")
    payload = struct.pack(">I", len(head)) + head + b"a"
    entry = received(with_checksum(metadata(num_messages_in_batch=1), payload))
    (message,) = entry.take()
    assert message.data() == b"a"
    assert message.partition_key() == "\ufffd\ufffd"


def test_large_metadata_is_not_mended() -> None:
    in_batch = b"\x18\x00" + b"\x12\x01\xff" * (MOST_MENDED_BYTES // 3)
    in_entry = metadata().SerializeToString() + b"\x32\x01\xff" * (MOST_MENDED_BYTES // 3)
    batch = struct.pack(">I", len(in_batch)) + in_batch
    data = with_checksum(metadata(num_messages_in_batch=1), batch)
    assert reason_of(data) == Reason.BatchDeSerializeError
    assert reason_of(struct.pack(">I", len(in_entry)) + in_entry) == Reason.BatchDeSerializeError


def test_not_too_many_texts_are_mended_at_once() -> None:
    head = b"\x12\x7f" + b"\xff" * 127 + b"\x18\x00"
    one = struct.pack(">I", len(head)) + head
    count = MOST_BYTES_AT_ONCE // MENDED_BYTES // len(head) * 3 // 2
    entry = received(with_checksum(metadata(num_messages_in_batch=count), one * count))
    messages = entry.take()
    assert 0 < len(messages) < count
    assert len(messages) + len(entry.take()) == count


def test_not_too_many_bytes_are_read_at_once() -> None:
    payload = bytes(MOST_BYTES_AT_ONCE // 2)
    entry = received(batch_of([OutgoingMessage(payload, number) for number in range(5)]))
    assert [len(entry.take()) for _ in range(3)] == [2, 2, 1]
    assert entry.left == 0


@pytest.mark.parametrize("pairs", [1, MOST_FIELDS])
def test_large_metadata_may_have_many_properties(pairs: int) -> None:
    size = LARGE_METADATA_BYTES // pairs + 1
    properties = {f"{number:0{size}}": "" for number in range(pairs - 3)} or {"x" * size: ""}
    message = OutgoingMessage(b"x", 0, properties)
    for entry in (batch_of([message]), message_entry(message, PRODUCER, NOW)):
        (found,) = received(entry).take()
        assert found.properties() == properties


def test_large_metadata_that_is_mostly_fields_is_broken() -> None:
    empty = b"\x0a\x00\x12\x00"
    in_entry = metadata().SerializeToString() + (b"\x22\x04" + empty) * 30_000
    in_batch = b"\x18\x00" + (b"\x0a\x04" + empty) * 30_000
    assert reason_of(struct.pack(">I", len(in_entry)) + in_entry) == Reason.BatchDeSerializeError
    batch = struct.pack(">I", len(in_batch)) + in_batch
    data = with_checksum(metadata(num_messages_in_batch=1), batch)
    assert reason_of(data) == Reason.BatchDeSerializeError


def test_large_metadata_that_is_no_protobuf_is_broken() -> None:
    data = b"\x0b" * (LARGE_METADATA_BYTES + 1)
    assert reason_of(struct.pack(">I", len(data)) + data) == Reason.BatchDeSerializeError


@pytest.mark.parametrize("size", [0, 1, 5, 6, 9, 12, 20])
def test_an_entry_that_is_cut_short_is_broken(size: int) -> None:
    assert reason_of(OFFICIAL_BATCH[:size]) in (
        Reason.ChecksumMismatch,
        Reason.BatchDeSerializeError,
    )


def test_a_damaged_entry_does_not_match_its_checksum() -> None:
    damaged = OFFICIAL_BATCH[:-1] + b"c"
    assert reason_of(damaged) == Reason.ChecksumMismatch


@pytest.mark.parametrize(
    ("count", "payload"),
    [
        (3, single(b"a") + single(b"b")),
        (2_000_000_000, single(b"a")),
        (0, single(b"a")),
        (-1, single(b"a")),
        (1, single(b"a", payload_size=2)),
        (1, single(b"a", payload_size=-1)),
        (1, b"\xff\xff\xff\xff" + single(b"a")),
        (1, b"\x00\x00\x00\x02\x18\xff"),
        (1, b""),
    ],
)
def test_a_batch_that_lies_is_broken(count: int, payload: bytes) -> None:
    data = with_checksum(metadata(num_messages_in_batch=count), payload)
    assert reason_of(data) == Reason.BatchDeSerializeError


def test_more_messages_than_a_batch_has_room_for_are_not_believed() -> None:
    payload = single(b"") * 3
    # The entry is broken before memory of that size is allocated, and all permits are released
    assert len(received(with_checksum(metadata(num_messages_in_batch=3), payload)).take()) == 3
    for count in (4, 2**31 - 1):
        with pytest.raises(BrokenEntryError) as broken:
            received(with_checksum(metadata(num_messages_in_batch=count), payload))
        assert broken.value.messages == count


def test_what_stands_behind_a_batch_is_not_looked_at() -> None:
    data = with_checksum(metadata(num_messages_in_batch=1), single(b"a") + b"more")
    # As other clients do
    assert [one.data() for one in received(data).take()] == [b"a"]


def test_metadata_beyond_the_end_is_broken() -> None:
    assert reason_of(b"\x00\x00\x00\xff\x0a") == Reason.BatchDeSerializeError
    assert reason_of(b"\x00\x00\x00\x01\x0a") == Reason.BatchDeSerializeError

    # Whatever part is readable.
    whole = metadata().SerializeToString()
    assert reason_of((len(whole) + 1).to_bytes(4, "big") + whole) == Reason.BatchDeSerializeError


@pytest.mark.parametrize("size", [-1, 30])
def test_a_message_that_does_not_end_in_its_batch_is_not_taken(size: int) -> None:
    payload = single(b"", payload_size=size) + single(b"")
    entry = received(with_checksum(metadata(num_messages_in_batch=2), payload))
    with pytest.raises(BrokenEntryError):
        entry.take(1)


def test_metadata_whose_texts_are_not_utf8_is_mended() -> None:
    head = metadata().SerializeToString() + b"\x32\x01\xff"
    (message,) = received(len(head).to_bytes(4, "big") + head + b"x").take()
    assert (message.data(), message.partition_key()) == (b"x", "\ufffd")


def test_an_entry_that_announces_too_much_is_broken() -> None:
    source = replace(SOURCE, max_uncompressed_bytes=1_000)
    fields = {"compression": pb.ZLIB, "uncompressed_size": 1_001}
    data = with_checksum(metadata(**fields), zlib.compress(bytes(1_001)))
    assert reason_of(data, source=source) == Reason.UncompressedSizeCorruption


def test_an_entry_may_be_decompressed_before_it_is_taken() -> None:
    producer = SendingProducer(1, "p", CompressionType.ZLib)
    entry = received(message_entry(OutgoingMessage(bytes(1_000_000), 0), producer, NOW))
    assert entry.uncompressed_bytes == 1_000_000
    entry.uncompress()
    entry.uncompress()
    assert entry.take()[0].data() == bytes(1_000_000)


def test_an_entry_that_was_not_compressed_has_the_size_it_came_with() -> None:
    entry = received(message_entry(OutgoingMessage(b"hello", 0), PRODUCER, NOW))
    sizes = [entry.uncompressed_bytes]
    entry.uncompress()
    assert [*sizes, entry.uncompressed_bytes] == [5, 5]


def encrypted() -> bytes:
    fields = metadata(num_messages_in_batch=2, compression=pb.LZ4, uncompressed_size=100)
    fields.encryption_keys.add(key="k", value=b"v")
    fields.encryption_algo = "algo"
    return with_checksum(fields, b"secret")


def test_an_encrypted_entry_is_broken() -> None:
    assert reason_of(encrypted()) == Reason.DecryptionError


def test_an_encrypted_entry_is_delivered_as_it_is_where_it_is_wanted() -> None:
    source = replace(SOURCE, takes_encrypted=True)
    (message,) = received(encrypted(), source=source).take()
    assert message.data() == b"secret"
    context = message.encryption_context()
    assert context is not None
    assert context.algorithm() == "algo"
    (key,) = context.keys()
    assert (key.key, key.value, key.metadata) == ("k", b"v", {})
    assert (context.batch_size(), context.uncompressed_message_size()) == (2, 100)
    assert context.compression_type() is CompressionType.LZ4


def test_only_a_part_of_a_message_is_a_chunk() -> None:
    chunk, only = metadata(num_chunks_from_msg=2), metadata(num_chunks_from_msg=1)
    sealed = metadata(num_chunks_from_msg=2)
    sealed.encryption_keys.add(key="k", value=b"v")
    source = replace(SOURCE, takes_encrypted=True)
    entries = [received(with_checksum(one, b""), source=source) for one in (chunk, only, sealed)]
    # Chunks are assembled; encrypted entries stay as received
    assert [one.is_chunk for one in entries] == [True, False, False]


def test_the_bytes_of_a_built_entry_carry_a_checksum() -> None:
    assert entry_bytes(batch_of(plain(1))).startswith(b"\x0e\x01")
