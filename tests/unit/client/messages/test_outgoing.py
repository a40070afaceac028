import google_crc32c
import pytest

import proto.PulsarApi_pb2 as pb
from client.messages.enums import CompressionType
from client.messages.outgoing import OutgoingMessage, SendingProducer, message_entry
from proto.frames import encode_payload_command
from tests.support.messages.entries import NOW, PRODUCER, batch_of, plain


def test_message_metadata_contains_every_attribute_of_the_message() -> None:
    message = OutgoingMessage(b"x", 3, {"a": "1"}, "key", "order", 5, 9, ["east", "west"])
    entry = message_entry(message, PRODUCER, NOW)
    expected = pb.MessageMetadata(
        producer_name="p",
        sequence_id=3,
        publish_time=NOW,
        properties=[pb.KeyValue(key="a", value="1")],
        partition_key="key",
        ordering_key=b"order",
        event_time=5,
        deliver_at_time=9,
        replicate_to=["east", "west"],
    )
    assert pb.MessageMetadata.FromString(entry.metadata) == expected
    assert entry.payload == b"x"


@pytest.mark.parametrize(
    ("message", "fits"),
    [
        (OutgoingMessage(b"", 0), True),
        (OutgoingMessage(b"", 0, deliver_at=1), False),
        (OutgoingMessage(b"", 0, replication_clusters=["a"]), False),
    ],
)
def test_delayed_or_selectively_replicated_messages_are_not_batched(message, fits) -> None:
    assert message.fits_batch is fits


def test_the_send_frame_of_a_batch_equals_the_general_encoding() -> None:
    entry = batch_of(plain(2))
    head, payload = entry.send_frame(8)
    send = pb.CommandSend(producer_id=8, sequence_id=0, num_messages=2, highest_sequence_id=1)
    command = pb.BaseCommand(type=pb.BaseCommand.SEND, send=send)
    assert head + payload == encode_payload_command(command, entry.metadata, entry.payload)
    assert payload is entry.payload


def test_the_send_command_of_a_single_message_has_no_highest_sequence_id() -> None:
    entry = message_entry(OutgoingMessage(b"hello", 4), PRODUCER, NOW)
    head, payload = entry.send_frame(1)
    send = pb.CommandSend(producer_id=1, sequence_id=4, num_messages=1)
    command = pb.BaseCommand(type=pb.BaseCommand.SEND, send=send)
    assert head + payload == encode_payload_command(command, entry.metadata, b"hello")
    assert google_crc32c.value(b"123456789") == 0xE3069283


@pytest.mark.parametrize("compression", list(CompressionType))
def test_an_empty_payload_is_not_compressed(compression: CompressionType) -> None:
    producer = SendingProducer(1, "p", compression)
    entry = message_entry(OutgoingMessage(None, 0), producer, NOW)
    # Empty: the official client could not read a compressed null value
    metadata = pb.MessageMetadata.FromString(entry.metadata)
    assert entry.payload == b""
    assert metadata.compression == pb.NONE
    assert metadata.null_value
