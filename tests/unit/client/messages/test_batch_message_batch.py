"""Batches whose bytes a program holds without the client."""

import pulsar
import pytest

import proto.PulsarApi_pb2 as pb
from client.exceptions import InvalidMessage
from client.messages.batch import MessageBatch
from client.messages.message_id import MessageId


def batched(payload: bytes, key: str) -> bytes:
    single = pb.SingleMessageMetadata(payload_size=len(payload), partition_key=key)
    metadata = single.SerializeToString()
    return len(metadata).to_bytes(4, "big") + metadata + payload


BATCH = batched(b"one", "a") + batched(b"", "b") + batched(b"three", "c")


def test_a_batch_is_parsed_like_the_official_client() -> None:
    theirs = pulsar.MessageBatch().with_message_id(pulsar.MessageId(2, 5, 6)).parse_from(BATCH, 3)
    ours = MessageBatch().with_message_id(MessageId(2, 5, 6)).parse_from(BATCH, 3)
    assert [(one.data(), one.partition_key(), str(one.message_id())) for one in ours] == [
        (one.data(), one.partition_key(), str(one.message_id())) for one in theirs
    ]
    assert ours[0].value() == b"one"


@pytest.mark.parametrize("size", [0, 1, 2])
def test_fewer_messages_than_the_batch_contains_may_be_parsed(size: int) -> None:
    theirs = pulsar.MessageBatch().with_message_id(pulsar.MessageId(2, 5, 6))
    ours = MessageBatch().with_message_id(MessageId(2, 5, 6)).parse_from(BATCH, size)
    found = theirs.parse_from(BATCH, size)
    assert [one.data() for one in ours] == [one.data() for one in found]


def test_a_large_batch_is_parsed_completely() -> None:
    large = batched(bytes(600_000), "a") * 5
    found = MessageBatch().parse_from(large, 5)
    assert [one.size_bytes for one in found] == [600_000] * 5


@pytest.mark.parametrize(("data", "size"), [(BATCH, 4), (BATCH[:-1], 3), (b"", 1)])
def test_a_batch_with_missing_messages_is_refused(data: bytes, size: int) -> None:
    with pytest.raises(InvalidMessage, match=f"says it has {size} messages"):
        MessageBatch().parse_from(data, size)


def test_a_message_id_of_another_type_is_refused() -> None:
    with pytest.raises(TypeError, match="a MessageId, not int"):
        MessageBatch().with_message_id(7)
