"""Compresses and decompresses payloads as Pulsar's clients do: raw blocks, no frames of sizes.

Decompression never takes more memory than the size that was announced, and an announced size that
so few bytes cannot make is refused before any memory is taken.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, NamedTuple

import cramjam

import proto.PulsarApi_pb2 as pb
from client.messages.enums import CompressionType
from client.messages.errors import BrokenEntryError

if TYPE_CHECKING:
    from collections.abc import Callable

_WRONG_SIZE = pb.CommandAck.UncompressedSizeCorruption
_BROKEN = pb.CommandAck.DecompressionError


class _Codec(NamedTuple):
    """One kind of compression.

    Attributes:
        compress: Makes bytes smaller.
        decompress_into: Fills a buffer, and returns how much it wrote.
        most_bytes_of_one: Bytes that one compressed byte can become at most.
        unhurried_bytes: From so many bytes on compression takes several milliseconds.
    """

    compress: Callable[[bytes], bytes]
    decompress_into: Callable[[bytes, bytearray], int]
    most_bytes_of_one: int
    unhurried_bytes: int


def _zlib_into(data: bytes, buffer: bytearray) -> int:
    stream = zlib.decompressobj()
    found = stream.decompress(data, len(buffer) + 1)
    if not stream.eof or len(found) > len(buffer):
        raise zlib.error("it has another size than was announced, or it is cut short")
    buffer[:] = found
    return len(found)


_CODECS = {
    CompressionType.LZ4.value: _Codec(
        lambda data: bytes(cramjam.lz4.compress_block(data, store_size=False)),
        cramjam.lz4.decompress_block_into,
        255,
        4_000_000,
    ),
    CompressionType.ZLib.value: _Codec(zlib.compress, _zlib_into, 1_032, 100_000),
    CompressionType.ZSTD.value: _Codec(
        lambda data: bytes(cramjam.zstd.compress(data)),
        cramjam.zstd.decompress_into,
        40_000,
        1_000_000,
    ),
    CompressionType.SNAPPY.value: _Codec(
        lambda data: bytes(cramjam.snappy.compress_raw(data)),
        cramjam.snappy.decompress_raw_into,
        64,
        4_000_000,
    ),
}
_SMALLEST_ALLOWANCE = 64
"""Bytes that any payload may become: the shortest ones are mostly frame."""


def compress(compression: CompressionType, data: bytes) -> bytes:
    """Return a payload as it is sent; see ``takes_long``."""
    if compression is CompressionType.NONE:
        return data
    return _CODECS[compression.value].compress(data)


def takes_long(compression: CompressionType, size_bytes: int) -> bool:
    """Tell whether ``compress`` would hold an event loop: a thread should do it."""
    if compression is CompressionType.NONE:
        return False
    return size_bytes >= _CODECS[compression.value].unhurried_bytes


def decompress(compression: int, data: bytes, size_bytes: int) -> bytes:
    """Return a payload as it was before it was compressed.

    Args:
        compression: As in MessageMetadata.
        data: The payload.
        size_bytes: What it says that it has uncompressed.

    Raises:
        BrokenEntryError: It is damaged, or has another size.
    """
    if compression == pb.NONE:
        return data
    if (codec := _CODECS.get(compression)) is None:
        raise BrokenEntryError(_BROKEN, f"a payload of an unknown compression: {compression}")
    if size_bytes > len(data) * codec.most_bytes_of_one + _SMALLEST_ALLOWANCE:
        raise BrokenEntryError(
            _WRONG_SIZE, f"{len(data)} bytes cannot become the {size_bytes} that they announce"
        )
    buffer = bytearray(size_bytes)
    try:
        found = codec.decompress_into(data, buffer)
    except (cramjam.DecompressionError, zlib.error) as error:
        raise BrokenEntryError(_BROKEN, f"a payload cannot be decompressed: {error}") from None
    if found != size_bytes:
        raise BrokenEntryError(
            _WRONG_SIZE, f"a payload announces {size_bytes} bytes, and has {found}"
        )
    return bytes(buffer)
