"""Compresses and decompresses payloads as Pulsar's clients do: raw blocks, no frames of sizes.

Decompression takes as much memory as was announced (twice, while it is copied) and never more, and
an announced size that so few bytes cannot become is refused before any memory is taken.
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
        decompress: Returns as many bytes as were announced, or fewer; more is an error.
        most_bytes_of_one: Bytes that one compressed byte can become at most.
        slow_bytes: So many bytes take several milliseconds to compress.
        slow_uncompressed_bytes: So many bytes take several milliseconds to decompress.
    """

    compress: Callable[[bytes], bytes]
    decompress: Callable[[bytes, int], bytes]
    most_bytes_of_one: int
    slow_bytes: int
    slow_uncompressed_bytes: int


def _by_cramjam(
    decompress_into: Callable[[bytes, bytearray], int],
) -> Callable[[bytes, int], bytes]:
    def decompress(data: bytes, size_bytes: int) -> bytes:
        buffer = bytearray(size_bytes)
        del buffer[decompress_into(data, buffer) :]
        return bytes(buffer)

    return decompress


def _by_zlib(data: bytes, size_bytes: int) -> bytes:
    stream = zlib.decompressobj()
    found = stream.decompress(data, size_bytes + 1)  # No limit is what 0 would mean.
    if not stream.eof:
        raise zlib.error("it has more bytes than it announces, or is cut short")
    return found


_CODECS = {
    CompressionType.LZ4.value: _Codec(
        lambda data: bytes(cramjam.lz4.compress_block(data, store_size=False)),
        _by_cramjam(cramjam.lz4.decompress_block_into),
        255,
        2_000_000,
        4_000_000,
    ),
    CompressionType.ZLib.value: _Codec(zlib.compress, _by_zlib, 1_032, 100_000, 1_000_000),
    CompressionType.ZSTD.value: _Codec(
        lambda data: bytes(cramjam.zstd.compress(data)),
        _by_cramjam(cramjam.zstd.decompress_into),
        44_000,
        500_000,
        4_000_000,
    ),
    CompressionType.SNAPPY.value: _Codec(
        lambda data: bytes(cramjam.snappy.compress_raw(data)),
        _by_cramjam(cramjam.snappy.decompress_raw_into),
        22,
        4_000_000,
        8_000_000,
    ),
}
_SMALLEST_ALLOWANCE = 64
"""Bytes that any payload may become: the shortest ones are mostly frame."""


def compress(compression: CompressionType, data: bytes) -> bytes:
    """Return a payload as it is sent; see ``compressing_takes_long``."""
    if compression is CompressionType.NONE:
        return data
    return _CODECS[compression.value].compress(data)


def compressing_takes_long(compression: CompressionType, size_bytes: int) -> bool:
    """Tell whether ``compress`` would hold an event loop: a thread should do it."""
    codec = _CODECS.get(compression.value)
    return codec is not None and size_bytes >= codec.slow_bytes


def decompressing_takes_long(compression: int, size_bytes: int) -> bool:
    """Tell whether ``decompress`` would hold an event loop; the size is the uncompressed one."""
    codec = _CODECS.get(compression)
    return codec is not None and size_bytes >= codec.slow_uncompressed_bytes


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
    try:
        found = codec.decompress(data, size_bytes)
    except (cramjam.DecompressionError, zlib.error) as error:
        raise BrokenEntryError(_BROKEN, f"a payload cannot be decompressed: {error}") from None
    if len(found) != size_bytes:
        raise BrokenEntryError(
            _WRONG_SIZE, f"a payload announces {size_bytes} bytes, and has {len(found)}"
        )
    return found
