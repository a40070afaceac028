import pytest

import proto.PulsarApi_pb2 as pb
from client.messages.outgoing import OutgoingMessage, SendingProducer, message_entry
from tests.support.messages.entries import BYTES, NOW, PRODUCER, TOPIC, batch_of, received
from tests.support.peers.frames import with_checksum

FULL = OutgoingMessage(b"x", 3, {"a": "1"}, "key", "order", 5)
NULL = OutgoingMessage(None, 4, partition_key="key")


def test_single_and_batched_messages_have_the_same_attributes() -> None:
    (alone,) = received(message_entry(FULL, PRODUCER, NOW)).take()
    (batched,) = received(batch_of([FULL])).take()
    for message in (alone, batched):
        assert (message.data(), message.value(), message.size_bytes) == (b"x", b"x", 1)
        assert message.properties() == {"a": "1"}
        assert (message.partition_key(), message.ordering_key()) == ("key", "order")
        assert (message.event_timestamp(), message.publish_timestamp()) == (5, NOW)
        assert message.sequence_id() == 3
        assert message.topic_name() == message.message_id().topic_name == TOPIC
        assert message.producer_name() == "p"
        assert message.redelivery_count() == 0
        assert message.encryption_context() is None
        assert not message.has_null_value()


@pytest.mark.parametrize("batched", [False, True])
def test_a_null_value_is_none_with_empty_data(batched: bool) -> None:
    entry = batch_of([NULL]) if batched else message_entry(NULL, PRODUCER, NOW)
    (message,) = received(entry).take()
    assert message.has_null_value()
    assert (message.data(), message.value(), message.partition_key()) == (b"", None, "key")


def test_value_returns_the_message_decoded_by_its_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    (message,) = received(message_entry(FULL, PRODUCER, NOW)).take()
    monkeypatch.setattr(BYTES, "decode_message", lambda one: (one, "decoded"), raising=False)
    assert message.value() == (message, "decoded")


def test_the_schema_version_is_available_as_text_and_number() -> None:
    producer = SendingProducer(1, "p", schema_version=(200).to_bytes(8, "big"))
    for entry in (message_entry(FULL, producer, NOW), batch_of([FULL], producer)):
        (message,) = received(entry).take()
        assert message.schema_version() == "\0\0\0\0\0\0\0\xc8"
        assert message.int_schema_version() == 200


def test_without_a_schema_the_schema_version_is_empty_and_minus_1() -> None:
    (message,) = received(batch_of([FULL])).take()
    assert (message.schema_version(), message.int_schema_version()) == ("", -1)


@pytest.mark.parametrize(
    ("key", "is_base64", "found"),
    [("a2V5", True, b"key"), ("a2V5", False, b"a2V5"), ("no base64!", True, b"no base64!")],
)
def test_a_base64_partition_key_is_decoded_to_bytes(
    key: str, is_base64: bool, found: bytes
) -> None:
    metadata = pb.MessageMetadata(
        producer_name="p",
        sequence_id=0,
        publish_time=NOW,
        partition_key=key,
        partition_key_b64_encoded=is_base64,
    )
    (message,) = received(with_checksum(metadata, b"")).take()
    assert message.partition_key() == key
    assert message.partition_key_bytes() == found


def test_the_repr_of_a_message_shows_its_id_topic_and_size() -> None:
    (message,) = received(message_entry(FULL, PRODUCER, NOW)).take()
    assert repr(message) == f"<Message (1,2,-1,-1) of {TOPIC}, 1 bytes>"
