import pytest

import proto.PulsarApi_pb2 as pb
from client.messages.batch import BatchBuilder
from client.messages.enums import CompressionType
from client.messages.outgoing import OutgoingMessage, SendingProducer
from tests.support.messages.entries import NOW, PRODUCER, batch_of, plain, received


def test_a_batch_counts_its_messages_and_bytes() -> None:
    builder = BatchBuilder()
    builder.add(OutgoingMessage(b"a", 0, {"k": "v"}, "x"))
    builder.add(OutgoingMessage(b"bb", 1))
    entry = builder.build(PRODUCER, NOW)
    assert builder.message_count == entry.message_count == 2
    assert builder.size_bytes == len(entry.payload)


def test_the_payload_equals_the_official_clients() -> None:
    entry = batch_of([OutgoingMessage(b"a", 0, {"k": "v"}, "x"), OutgoingMessage(b"bb", 1)])
    assert entry.payload.hex() == ("0000000f0a060a016b120176120178180140006100000004180240016262")


def test_batch_metadata_has_the_first_messages_keys_and_the_sequence_id_range() -> None:
    first = OutgoingMessage(b"a", 5, partition_key="k", ordering_key="o")
    producer = SendingProducer(1, "p", CompressionType.SNAPPY, b"version")
    entry = batch_of([first, OutgoingMessage(b"b", 9, partition_key="other")], producer)
    metadata = pb.MessageMetadata.FromString(entry.metadata)
    assert (metadata.partition_key, metadata.ordering_key) == ("k", b"o")
    assert (metadata.sequence_id, metadata.highest_sequence_id) == (5, 9)
    assert metadata.num_messages_in_batch == 2
    assert (metadata.producer_name, metadata.publish_time) == ("p", NOW)
    assert metadata.compression == pb.SNAPPY
    assert metadata.schema_version == b"version"
    assert (entry.sequence_id, entry.highest_sequence_id) == (5, 9)


@pytest.mark.parametrize("size", [0, 1, 127, 128, 16_383, 16_384, 100_000])
@pytest.mark.parametrize("number", [0, 127, 128, 16_384, 2**63])
def test_the_encoding_of_plain_messages_equals_protobuf(size: int, number: int) -> None:
    entry = batch_of([OutgoingMessage(bytes(size), number)])
    head = pb.SingleMessageMetadata(payload_size=size, sequence_id=number).SerializeToString()
    assert entry.payload == len(head).to_bytes(4, "big") + head + bytes(size)


@pytest.mark.parametrize(
    "message",
    [
        OutgoingMessage(None, 1),
        OutgoingMessage(b"x", 1, {"a": "1"}),
        OutgoingMessage(b"x", 1, partition_key=""),
        OutgoingMessage(b"x", 1, ordering_key="order"),
        OutgoingMessage(b"x", 1, event_timestamp=0),
    ],
)
def test_a_message_with_any_extra_part_is_not_encoded_as_plain(message: OutgoingMessage) -> None:
    entry = batch_of([message])
    plain_size = 4 + len(b"\x18\x01\x40\x01x")
    assert len(entry.payload) > plain_size - (message.payload is None)


def test_a_batch_of_a_single_message_has_no_highest_sequence_id() -> None:
    entry = batch_of(plain(1))
    assert not pb.MessageMetadata.FromString(entry.metadata).HasField("highest_sequence_id")
    assert len(received(entry).take()) == 1


def test_an_empty_batch_cannot_be_sent() -> None:
    with pytest.raises(ValueError, match="without messages"):
        BatchBuilder().build(PRODUCER, NOW)
