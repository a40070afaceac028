"""Decompression of payloads with a size limit, distrusting the announced size."""

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
    """Return the uncompressed payload.

    Args:
        metadata: The message's metadata.
        payload: The payload from the producer.
        max_bytes: Most uncompressed bytes.

    Raises:
        DecompressionError: Damaged, too large, or the announced size is wrong.
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
    # Some codecs do not fill a too large buffer; zeros avoid leaking memory.
    buffer = bytearray(size)
    del buffer[_INTO[compression](payload, buffer) :]
    return bytes(buffer)
