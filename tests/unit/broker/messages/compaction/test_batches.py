"""Batches unpacked and repacked, in each compression."""

from __future__ import annotations

import os
import zlib

import google_crc32c
import pyarrow as pa
import pytest

import proto.PulsarApi_pb2 as pb
from broker.messages.compaction.batches import (
    MOST_BATCH_BYTES,
    MOST_PACKED_BYTES,
    DecompressionError,
    UnreadableBatchError,
    decompressed,
    is_readable_batch,
    messages_of,
    unpacked,
    with_some,
)
from broker.messages.metadata import parse_metadata, payload_of
from tests.support.subscriptions.messages import single

BATCH = single(b"one", partition_key="a") + single(b"two", partition_key="b") + single(b"three")
COMPRESSIONS = [pb.NONE, pb.LZ4, pb.ZLIB, pb.ZSTD, pb.SNAPPY]


def packed(compression: pb.CompressionType.ValueType, data: bytes) -> bytes:
    codecs = {pb.LZ4: "lz4_raw", pb.ZSTD: "zstd", pb.SNAPPY: "snappy"}
    if compression == pb.NONE:
        return data
    if compression == pb.ZLIB:
        return zlib.compress(data)
    return pa.compress(data, codec=codecs[compression], asbytes=True)


def metadata_of(compression: pb.CompressionType.ValueType, size: int) -> pb.MessageMetadata:
    metadata = pb.MessageMetadata(producer_name="p", sequence_id=4, publish_time=7)
    metadata.num_messages_in_batch = 3
    metadata.uncompressed_size = size
    if compression != pb.NONE:
        metadata.compression = compression
    return metadata


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_removed_message_keeps_its_index_in_the_batch(compression) -> None:
    metadata = metadata_of(compression, len(BATCH))
    messages = list(messages_of(unpacked(metadata, packed(compression, BATCH)), 3))
    entry = with_some(metadata, messages, [1])
    changed = parse_metadata(entry)
    assert list(changed.compacted_batch_indexes) == [1]
    assert (changed.num_messages_in_batch, changed.sequence_id) == (3, 4)
    assert changed.compression == compression
    left = list(messages_of(unpacked(changed, payload_of(entry)), 3))
    assert [one.metadata.compacted_out for one in left] == [True, False, True]
    assert [one.metadata.payload_size for one in left] == [0, 3, 0]
    assert left[1].framed == messages[1].framed


def test_a_fully_retained_uncompressed_batch_is_marked_as_by_a_real_broker() -> None:
    batch = b"".join(single(b"kk-%d" % n, partition_key="kk") for n in range(2))
    metadata = metadata_of(pb.NONE, 0)
    metadata.num_messages_in_batch = 2
    changed = parse_metadata(with_some(metadata, list(messages_of(batch, 2)), [0, 1]))
    # A fully retained batch is marked, too.
    assert changed.uncompressed_size == len(batch)
    assert list(changed.compacted_batch_indexes) == [0, 1]


def test_a_repacked_batch_has_a_correct_checksum() -> None:
    entry = with_some(metadata_of(pb.NONE, 0), list(messages_of(BATCH, 3)), [0])
    checksum = google_crc32c.value(entry[6:])
    assert entry[:6] == b"\x0e\x01" + checksum.to_bytes(4, "big")


@pytest.mark.parametrize("compression", COMPRESSIONS[1:])
def test_damaged_compressed_bytes_are_unreadable(compression: pb.CompressionType.ValueType) -> None:
    with pytest.raises(UnreadableBatchError):
        unpacked(metadata_of(compression, 1_000), b"\xff\xff damaged")


@pytest.mark.parametrize(
    "damaged", [BATCH[:-1], BATCH[:-9], b"", b"\0\0\0\x02\xff\xff", b"\xff\xff\xff\xff"]
)
def test_a_truncated_or_malformed_batch_is_unreadable(damaged: bytes) -> None:
    with pytest.raises(UnreadableBatchError):
        list(messages_of(damaged, 3))


def test_a_batch_above_the_size_bound_is_not_decompressed() -> None:
    size = MOST_BATCH_BYTES + 1
    small = packed(pb.ZSTD, bytes(size))
    with pytest.raises(UnreadableBatchError):
        unpacked(metadata_of(pb.ZSTD, size), small)


def test_a_large_batch_is_rewritten_without_compression() -> None:
    large = single(os.urandom(MOST_PACKED_BYTES), partition_key="a") + single(b"b")
    metadata = metadata_of(pb.ZLIB, len(large))
    metadata.num_messages_in_batch = 2
    entry = with_some(metadata, list(messages_of(large, 2)), [0])
    changed = parse_metadata(entry)
    assert changed.compression == pb.NONE
    assert len(payload_of(entry)) == changed.uncompressed_size


def test_an_encrypted_batch_is_not_readable() -> None:
    metadata = metadata_of(pb.NONE, 0)
    assert is_readable_batch(metadata)
    metadata.encryption_keys.add(key="k", value=b"v")
    assert not is_readable_batch(metadata)


PLAIN = b"hello" * 40
PACKED = {kind: packed(kind, PLAIN) for kind in COMPRESSIONS}
PACKERS = COMPRESSIONS[1:]


@pytest.mark.parametrize("kind", PACKED)
def test_a_decompressed_payload_equals_the_original(kind: pb.CompressionType.ValueType) -> None:
    assert decompressed(metadata_of(kind, len(PLAIN)), PACKED[kind], 200) == PLAIN


@pytest.mark.parametrize("kind", PACKERS)
@pytest.mark.parametrize("size", [0, 1, 199, 201, 100_000])
def test_a_wrong_announced_size_is_refused(kind, size) -> None:
    with pytest.raises(DecompressionError):
        decompressed(metadata_of(kind, size), PACKED[kind], 100_000)


@pytest.mark.parametrize("kind", PACKERS)
def test_an_announced_size_above_the_bound_is_refused(kind: pb.CompressionType.ValueType) -> None:
    with pytest.raises(DecompressionError, match="says that it has 200 bytes: more than 199"):
        decompressed(metadata_of(kind, 200), PACKED[kind], 199)


@pytest.mark.parametrize("kind", PACKERS)
def test_a_damaged_payload_raises_a_decompression_error(kind: pb.CompressionType.ValueType) -> None:
    with pytest.raises(DecompressionError, match="the message"):
        decompressed(metadata_of(kind, 200), b"\xff\xff damaged", 200)
