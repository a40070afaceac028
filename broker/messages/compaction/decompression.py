"""Payloads decompressed by the broker, which believes no size that a producer announces."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import cramjam

import proto.PulsarApi_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Callable

_INTO: dict[int, Callable[[bytes, bytearray], int]] = {
    pb.LZ4: cramjam.lz4.decompress_block_into,
    pb.ZSTD: cramjam.zstd.decompress_into,
    pb.SNAPPY: cramjam.snappy.decompress_raw_into,
}


class DecompressionError(Exception):
    """A payload cannot be decompressed; one sentence."""


def decompressed(metadata: pb.MessageMetadata, payload: bytes, max_bytes: int) -> bytes:
    """Return a payload without compression.

    Args:
        metadata: Its message's.
        payload: As it was sent.
        max_bytes: Most bytes that it may have then.

    Raises:
        DecompressionError: It is damaged, has another size than it says, or is too large.
    """
    if metadata.compression == pb.NONE:
        return payload
    size = metadata.uncompressed_size
    if size > max_bytes:
        raise DecompressionError(
            f"the message says that it has {size} bytes: more than {max_bytes}"
        )
    try:
        found = _decompressed(metadata.compression, payload, size)
    except (KeyError, cramjam.DecompressionError, zlib.error) as error:
        raise DecompressionError(f"the message cannot be decompressed: {error}") from None
    if len(found) != size:
        raise DecompressionError(f"the message says that it has {size} bytes: it has another size")
    return found


def _decompressed(compression: int, payload: bytes, size: int) -> bytes:
    if compression == pb.ZLIB:
        return zlib.decompressobj().decompress(payload, size + 1)  # 0 would mean no limit.
    # Some codecs leave the rest of what is too large a buffer as it was: it is zeros, not memory.
    buffer = bytearray(size)
    del buffer[_INTO[compression](payload, buffer) :]
    return bytes(buffer)
