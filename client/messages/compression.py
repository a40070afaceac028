"""Compression of payloads as in Pulsar's clients: raw blocks, without framing or a size.

Decompression never takes more memory than the announced size (twice, during a copy); an announced
size unreachable from the compressed bytes is refused before any allocation.
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
    """The functions and limits of a compression algorithm.

    Attributes:
        compress: Function that compresses bytes.
        decompress: Function that decompresses bytes to at most the announced size; more is an
            error.
        most_bytes_of_one: Maximum number of bytes into which one compressed byte can expand.
        slow_bytes: Size in bytes from which compression takes several milliseconds.
        slow_uncompressed_bytes: Uncompressed size in bytes from which decompression takes several
            milliseconds.
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
    found = stream.decompress(data, size_bytes + 1)  # 0 would mean no limit.
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
"""Uncompressed bytes always allowed, because very short payloads are mostly overhead."""


def compress(compression: CompressionType, data: bytes) -> bytes:
    """Compress a payload; see ``compressing_takes_long``."""
    if compression is CompressionType.NONE:
        return data
    return _CODECS[compression.value].compress(data)


def compressing_takes_long(compression: CompressionType, size_bytes: int) -> bool:
    """Return True if ``compress`` would block the event loop, and should run in a thread."""
    codec = _CODECS.get(compression.value)
    return codec is not None and size_bytes >= codec.slow_bytes


def decompressing_takes_long(compression: int, size_bytes: int) -> bool:
    """Return True if ``decompress`` would block the event loop, and should run in a thread.

    ``size_bytes`` is the uncompressed size.
    """
    codec = _CODECS.get(compression)
    return codec is not None and size_bytes >= codec.slow_uncompressed_bytes


def decompress(compression: int, data: bytes, size_bytes: int) -> bytes:
    """Decompress a payload to its announced size.

    Args:
        compression: Number of the algorithm, as in MessageMetadata.
        data: The payload.
        size_bytes: Uncompressed size in bytes, as announced in the metadata.

    Raises:
        BrokenEntryError: The payload is damaged, or has another size.
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
