import random

import pytest

import proto.PulsarApi_pb2 as pb
from client.exceptions import MessageTooBig
from client.messages.chunked_message import ChunkedMessage
from client.messages.enums import CompressionType
from client.messages.outgoing import OutgoingMessage, SendingProducer, message_entry
from tests.support.messages.entries import NOW, PRODUCER

LIMIT = 1_000
DATA = random.Random(15).randbytes(10 * LIMIT)


def chunked(payload: bytes | None, limit: int = LIMIT, **parts: object) -> ChunkedMessage:
    return ChunkedMessage(OutgoingMessage(payload, 3, **parts), PRODUCER, NOW, limit)


@pytest.mark.parametrize("size", [LIMIT + 1, 2 * LIMIT, 10 * LIMIT])
def test_a_large_message_is_split_into_chunks_within_the_size_limit(size: int) -> None:
    message = chunked(DATA[:size], properties={"a": "1"}, partition_key="key")
    entries = [message.entry(number) for number in range(message.chunk_count)]
    assert b"".join(entry.payload for entry in entries) == DATA[:size]
    for number, entry in enumerate(entries):
        assert len(entry.metadata) + len(entry.payload) <= LIMIT
        assert entry.is_chunk
        assert entry.sequence_id == 3
        metadata = pb.MessageMetadata.FromString(entry.metadata)
        assert (metadata.uuid, metadata.chunk_id) == ("p-3", number)
        assert metadata.num_chunks_from_msg == message.chunk_count
        assert metadata.total_chunk_msg_size == size
        assert metadata.partition_key == "key"
    assert all(entry.payload for entry in entries)


def test_chunks_share_the_memory_of_the_whole_payload() -> None:
    message = chunked(DATA)
    parts = [message.entry(number).payload for number in range(message.chunk_count)]
    assert all(isinstance(part, memoryview) and part.obj is DATA for part in parts)


@pytest.mark.parametrize("payload", [None, b"", DATA[:LIMIT]])
def test_a_message_within_the_limit_is_sent_unchunked(payload: bytes | None) -> None:
    message = chunked(payload)
    assert message.chunk_count == 1
    assert message.entry(0) == message_entry(OutgoingMessage(payload, 3), PRODUCER, NOW)


def test_a_message_is_compressed_before_chunking() -> None:
    producer = SendingProducer(1, "p", CompressionType.LZ4)
    message = ChunkedMessage(OutgoingMessage(b"x" * 10_000, 3), producer, NOW, LIMIT)
    assert message.chunk_count == 1
    metadata = pb.MessageMetadata.FromString(message.entry(0).metadata)
    assert metadata.uncompressed_size == 10_000


def test_the_send_command_of_a_chunk_is_marked_as_chunk() -> None:
    head, _ = chunked(DATA).entry(1).send_frame(1)
    command = pb.BaseCommand.FromString(head[8 : 8 + int.from_bytes(head[4:8], "big")])
    assert command.send.is_chunk


def test_metadata_that_leaves_no_room_for_payload_is_refused() -> None:
    with pytest.raises(MessageTooBig, match="make them shorter"):
        chunked(DATA, properties={"a": "x" * LIMIT})
