"""Payloads decompress regardless of the size announced by the producer."""

import zlib

import pyarrow as pa
import pytest

import proto.PulsarApi_pb2 as pb
from broker.messages.compaction.decompression import DecompressionError, decompressed

PLAIN = b"hello" * 40
PACKED = {
    pb.NONE: PLAIN,
    pb.ZLIB: zlib.compress(PLAIN),
    pb.LZ4: pa.compress(PLAIN, codec="lz4_raw", asbytes=True),
    pb.ZSTD: pa.compress(PLAIN, codec="zstd", asbytes=True),
    pb.SNAPPY: pa.compress(PLAIN, codec="snappy", asbytes=True),
}
PACKERS = [kind for kind in PACKED if kind != pb.NONE]


def metadata(kind: pb.CompressionType.ValueType, size: int) -> pb.MessageMetadata:
    return pb.MessageMetadata(compression=kind, uncompressed_size=size)


@pytest.mark.parametrize("kind", PACKED)
def test_a_payload_is_as_it_was(kind: pb.CompressionType.ValueType) -> None:
    assert decompressed(metadata(kind, len(PLAIN)), PACKED[kind], 200) == PLAIN


@pytest.mark.parametrize("kind", PACKERS)
@pytest.mark.parametrize("size", [0, 1, 199, 201, 100_000])
def test_another_size_than_it_has_is_not_believed(
    kind: pb.CompressionType.ValueType, size: int
) -> None:
    with pytest.raises(DecompressionError):
        decompressed(metadata(kind, size), PACKED[kind], 100_000)


@pytest.mark.parametrize("kind", PACKERS)
def test_no_more_memory_is_taken_than_allowed(kind: pb.CompressionType.ValueType) -> None:
    with pytest.raises(DecompressionError, match="says that it has 200 bytes: more than 199"):
        decompressed(metadata(kind, 200), PACKED[kind], 199)


@pytest.mark.parametrize("kind", PACKERS)
def test_damage_is_said(kind: pb.CompressionType.ValueType) -> None:
    with pytest.raises(DecompressionError, match="the message"):
        decompressed(metadata(kind, 200), b"\xff\xff damaged", 200)
