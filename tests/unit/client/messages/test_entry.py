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


def test_a_message_outside_a_batch_has_no_batch_index() -> None:
    entry = received(message_entry(OutgoingMessage(b"x", 7), PRODUCER, NOW), entry_id=9)
    (message,) = entry.take()
    assert message.message_id().entry == (1, 9)
    assert message.message_id().batch_index() == -1
    assert message.sequence_id() == 7
    assert entry.left == 0


def test_broker_entry_metadata_is_skipped() -> None:
    said = pb.BrokerEntryMetadata(index=5).SerializeToString()
    data = b"\x0e\x02" + struct.pack(">I", len(said)) + said + OFFICIAL_BATCH
    assert [one.data() for one in received(data).take()] == [b"a", b"bb"]


def test_an_entry_without_a_checksum_is_read() -> None:
    assert [one.data() for one in received(OFFICIAL_BATCH[6:]).take()] == [b"a", b"bb"]


def test_a_batch_is_taken_in_steps_of_limited_messages() -> None:
    entry = received(batch_of(plain(5)))
    steps = []
    while entry.left:
        steps.append([one.data() for one in entry.take(2)])
    assert steps == [[b"0", b"1"], [b"2", b"3"], [b"4"]]


@pytest.mark.parametrize(
    ("ack_set", "left"),
    [([], {0, 1, 2}), ([0b101], {0, 2}), ([0], set()), ([-1], {0, 1, 2}), ([0b010, 7], {1})],
)
def test_acknowledged_messages_of_a_batch_are_omitted(ack_set: list[int], left: set[int]) -> None:
    entry = received(batch_of(plain(3)), ack_set=ack_set)
    messages = entry.take()
    assert {one.batch_index for one in messages} == left
    assert entry.left == 0


def test_messages_beyond_the_ack_set_count_as_acknowledged() -> None:
    entry = received(batch_of(plain(70)), ack_set=[-1])
    assert [one.batch_index for one in entry.take()] == list(range(64))


def test_compacted_messages_of_a_batch_are_omitted() -> None:
    payload = single(b"", compacted_out=True) + single(b"x")
    entry = received(with_checksum(metadata(num_messages_in_batch=2), payload))
    (message,) = entry.take()
    assert (message.data(), message.batch_index) == (b"x", 1)


def test_invalid_utf_8_in_message_metadata_is_replaced() -> None:
    head = b"\x12\x02\xff\xfex\x18\x01".replace(b"x", b"")
    payload = struct.pack(">I", len(head)) + head + b"a"
    entry = received(with_checksum(metadata(num_messages_in_batch=1), payload))
    (message,) = entry.take()
    assert message.data() == b"a"
    assert message.partition_key() == "\ufffd\ufffd"


def test_large_metadata_with_invalid_utf_8_is_refused() -> None:
    in_batch = b"\x18\x00" + b"\x12\x01\xff" * (MOST_MENDED_BYTES // 3)
    in_entry = metadata().SerializeToString() + b"\x32\x01\xff" * (MOST_MENDED_BYTES // 3)
    batch = struct.pack(">I", len(in_batch)) + in_batch
    data = with_checksum(metadata(num_messages_in_batch=1), batch)
    assert reason_of(data) == Reason.BatchDeSerializeError
    assert reason_of(struct.pack(">I", len(in_entry)) + in_entry) == Reason.BatchDeSerializeError


def test_the_number_of_repaired_messages_per_step_is_bounded() -> None:
    head = b"\x12\x7f" + b"\xff" * 127 + b"\x18\x00"
    one = struct.pack(">I", len(head)) + head
    count = MOST_BYTES_AT_ONCE // MENDED_BYTES // len(head) * 3 // 2
    entry = received(with_checksum(metadata(num_messages_in_batch=count), one * count))
    messages = entry.take()
    assert 0 < len(messages) < count
    assert len(messages) + len(entry.take()) == count


def test_the_bytes_read_per_step_are_bounded() -> None:
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


def test_large_metadata_with_too_many_fields_is_broken() -> None:
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
def test_a_truncated_entry_is_broken(size: int) -> None:
    assert reason_of(OFFICIAL_BATCH[:size]) in (
        Reason.ChecksumMismatch,
        Reason.BatchDeSerializeError,
    )


def test_a_damaged_entry_fails_its_checksum() -> None:
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
def test_a_batch_with_a_false_count_or_size_is_broken(count: int, payload: bytes) -> None:
    data = with_checksum(metadata(num_messages_in_batch=count), payload)
    assert reason_of(data) == Reason.BatchDeSerializeError


def test_a_message_count_too_large_for_its_payload_is_refused() -> None:
    payload = single(b"") * 3
    # The entry is broken before memory of that size is allocated, and all permits are released
    assert len(received(with_checksum(metadata(num_messages_in_batch=3), payload)).take()) == 3
    for count in (4, 2**31 - 1):
        with pytest.raises(BrokenEntryError) as broken:
            received(with_checksum(metadata(num_messages_in_batch=count), payload))
        assert broken.value.messages == count


def test_bytes_after_the_last_message_of_a_batch_are_ignored() -> None:
    data = with_checksum(metadata(num_messages_in_batch=1), single(b"a") + b"more")
    # As other clients do
    assert [one.data() for one in received(data).take()] == [b"a"]


def test_metadata_beyond_the_end_of_the_entry_is_broken() -> None:
    assert reason_of(b"\x00\x00\x00\xff\x0a") == Reason.BatchDeSerializeError
    assert reason_of(b"\x00\x00\x00\x01\x0a") == Reason.BatchDeSerializeError

    # Whatever part is readable.
    whole = metadata().SerializeToString()
    assert reason_of((len(whole) + 1).to_bytes(4, "big") + whole) == Reason.BatchDeSerializeError


@pytest.mark.parametrize("size", [-1, 30])
def test_a_message_that_ends_outside_its_batch_is_refused(size: int) -> None:
    payload = single(b"", payload_size=size) + single(b"")
    entry = received(with_checksum(metadata(num_messages_in_batch=2), payload))
    with pytest.raises(BrokenEntryError):
        entry.take(1)


def test_invalid_utf_8_in_entry_metadata_is_replaced() -> None:
    head = metadata().SerializeToString() + b"\x32\x01\xff"
    (message,) = received(len(head).to_bytes(4, "big") + head + b"x").take()
    assert (message.data(), message.partition_key()) == (b"x", "\ufffd")


def test_an_entry_above_the_uncompressed_size_limit_is_refused() -> None:
    source = replace(SOURCE, max_uncompressed_bytes=1_000)
    fields = {"compression": pb.ZLIB, "uncompressed_size": 1_001}
    data = with_checksum(metadata(**fields), zlib.compress(bytes(1_001)))
    assert reason_of(data, source=source) == Reason.UncompressedSizeCorruption


def test_an_entry_may_be_decompressed_before_its_messages_are_taken() -> None:
    producer = SendingProducer(1, "p", CompressionType.ZLib)
    entry = received(message_entry(OutgoingMessage(bytes(1_000_000), 0), producer, NOW))
    assert entry.uncompressed_bytes == 1_000_000
    entry.uncompress()
    entry.uncompress()
    assert entry.take()[0].data() == bytes(1_000_000)


def test_an_uncompressed_entry_keeps_its_received_size() -> None:
    entry = received(message_entry(OutgoingMessage(b"hello", 0), PRODUCER, NOW))
    sizes = [entry.uncompressed_bytes]
    entry.uncompress()
    assert [*sizes, entry.uncompressed_bytes] == [5, 5]


def encrypted() -> bytes:
    fields = metadata(num_messages_in_batch=2, compression=pb.LZ4, uncompressed_size=100)
    fields.encryption_keys.add(key="k", value=b"v")
    fields.encryption_algo = "algo"
    return with_checksum(fields, b"secret")


def test_an_encrypted_entry_is_refused_with_a_decryption_error() -> None:
    assert reason_of(encrypted()) == Reason.DecryptionError


def test_an_encrypted_entry_is_delivered_encrypted_when_accepted() -> None:
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


def test_only_unencrypted_parts_of_a_message_count_as_chunks() -> None:
    chunk, only = metadata(num_chunks_from_msg=2), metadata(num_chunks_from_msg=1)
    sealed = metadata(num_chunks_from_msg=2)
    sealed.encryption_keys.add(key="k", value=b"v")
    source = replace(SOURCE, takes_encrypted=True)
    entries = [received(with_checksum(one, b""), source=source) for one in (chunk, only, sealed)]
    # Chunks are assembled; encrypted entries stay as received
    assert [one.is_chunk for one in entries] == [True, False, False]


def test_the_bytes_of_a_built_entry_carry_a_checksum() -> None:
    assert entry_bytes(batch_of(plain(1))).startswith(b"\x0e\x01")
