import tracemalloc
import zlib

import pytest

import proto.PulsarApi_pb2 as pb
from client.messages.compression import (
    compress,
    compressing_takes_long,
    decompress,
    decompressing_takes_long,
)
from client.messages.enums import CompressionType
from client.messages.errors import BrokenEntryError

KINDS = list(CompressionType)
REAL_KINDS = KINDS[1:]
TEXT = b"many words, many words, and " * 100
HELLO = b"hello hello hello hello "
# Payloads as sent by the official client.
OFFICIAL = {
    CompressionType.LZ4: "6968656c6c6f20060050656c6c6f20",
    CompressionType.ZLib: "789ccb48cdc9c957c8c0200170d408d1",
    CompressionType.ZSTD: "28b52ffd20186500003068656c6c6f200100f14a11",
    CompressionType.SNAPPY: "181468656c6c6f20460600",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("data", [b"", b"x", TEXT])
def test_compressed_data_is_decompressed_unchanged(kind: CompressionType, data: bytes) -> None:
    assert decompress(kind.value, compress(kind, data), len(data)) == data


@pytest.mark.parametrize(("kind", "payload"), OFFICIAL.items())
def test_payloads_of_the_official_client_are_decompressed(
    kind: CompressionType, payload: str
) -> None:
    assert decompress(kind.value, bytes.fromhex(payload), len(HELLO)) == HELLO


@pytest.mark.parametrize(
    ("kind", "payload"),
    [(CompressionType.LZ4, "5068656c6c6f"), (CompressionType.SNAPPY, "051068656c6c6f")],
)
def test_compressed_blocks_have_no_extra_header(kind: CompressionType, payload: str) -> None:
    assert compress(kind, b"hello").hex() == payload


def test_a_truncated_zlib_stream_is_broken() -> None:
    stream = compress(CompressionType.ZLib, TEXT)[:-2]
    with pytest.raises(BrokenEntryError, match="cut short"):
        decompress(CompressionType.ZLib.value, stream, len(TEXT))


@pytest.mark.parametrize("kind", REAL_KINDS)
@pytest.mark.parametrize("wrong", [-1, 1, -len(TEXT)])
def test_a_payload_of_another_size_than_announced_is_broken(
    kind: CompressionType, wrong: int
) -> None:
    block = compress(kind, TEXT)
    with pytest.raises(BrokenEntryError):
        decompress(kind.value, block, len(TEXT) + wrong)


@pytest.mark.parametrize("kind", REAL_KINDS)
@pytest.mark.parametrize("block", [b"", b"\xff" * 20, compress(CompressionType.ZLib, TEXT)[:20]])
def test_damaged_compressed_data_is_broken(kind: CompressionType, block: bytes) -> None:
    with pytest.raises(BrokenEntryError):
        decompress(kind.value, block, 1_000)


@pytest.mark.parametrize("kind", REAL_KINDS)
def test_an_implausible_announced_size_is_refused_without_allocating_memory(
    kind: CompressionType,
) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(BrokenEntryError) as caught:
            decompress(kind.value, b"\x28\xb5\x2f\xfd" * 4, 2**30)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()
    assert caught.value.validation_error == pb.CommandAck.UncompressedSizeCorruption


def test_a_decompression_bomb_takes_no_more_memory_than_announced() -> None:
    bomb = zlib.compress(bytes(2**26))
    tracemalloc.start()
    try:
        with pytest.raises(BrokenEntryError):
            decompress(CompressionType.ZLib.value, bomb, 1_000)
        assert tracemalloc.get_traced_memory()[1] < 200_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", REAL_KINDS)
def test_data_of_the_highest_compression_ratio_is_decompressed(kind: CompressionType) -> None:
    data = bytes(2**20)
    assert decompress(kind.value, compress(kind, data), len(data)) == data


def test_an_unknown_compression_type_is_refused() -> None:
    with pytest.raises(BrokenEntryError, match="unknown compression: 9"):
        decompress(9, b"x", 1)


def test_only_large_payloads_are_classified_as_slow_to_compress() -> None:
    for kind in REAL_KINDS:
        assert not compressing_takes_long(kind, 10_000)
        assert not decompressing_takes_long(kind.value, 10_000)
        assert compressing_takes_long(kind, 50_000_000)
        assert decompressing_takes_long(kind.value, 50_000_000)
    assert not compressing_takes_long(CompressionType.NONE, 50_000_000)
    assert not decompressing_takes_long(pb.NONE, 50_000_000)
