"""Functions that unpack the messages of a batch, and rebuild a batch without some of them."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, NamedTuple

import cramjam
import google_crc32c
from google.protobuf.message import DecodeError

import proto.PulsarApi_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_INTO: dict[int, Callable[[bytes, bytearray], int]] = {
    pb.LZ4: cramjam.lz4.decompress_block_into,
    pb.ZSTD: cramjam.zstd.decompress_into,
    pb.SNAPPY: cramjam.snappy.decompress_raw_into,
}


class DecompressionError(Exception):
    """A message payload that cannot be decompressed; the error's text is one sentence."""


def decompressed(metadata: pb.MessageMetadata, payload: bytes, max_bytes: int) -> bytes:
    """Decompress a message's payload within a limit of bytes, and return it.

    Raises:
        DecompressionError: The payload is damaged or too large, or its announced size is wrong.
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
        raise DecompressionError(f"the message does not have the {size} bytes that it announces")
    return found


def _decompressed(compression: int, payload: bytes, size: int) -> bytes:
    if compression == pb.ZLIB:
        return zlib.decompressobj().decompress(payload, size + 1)  # 0 would mean no limit.
    # Some codecs do not fill a too large buffer; zeros avoid leaking memory.
    buffer = bytearray(size)
    del buffer[_INTO[compression](payload, buffer) :]
    return bytes(buffer)


MOST_BATCH_BYTES = 5 * 1024 * 1024
"""The largest uncompressed batch, in bytes, that compaction reduces; larger ones would block the
event loop, and are kept whole."""
MOST_PACKED_BYTES = 1024 * 1024
"""The largest reduced batch, in bytes, that is compressed again; compressing more would block the
event loop."""

_LENGTH = struct.Struct(">I")
_CHECKSUM_MAGIC = b"\x0e\x01"
_PACKED: dict[int, Callable[[bytes], bytes]] = {
    pb.LZ4: lambda data: bytes(cramjam.lz4.compress_block(data, store_size=False)),
    pb.ZSTD: lambda data: bytes(cramjam.zstd.compress(data)),
    pb.SNAPPY: lambda data: bytes(cramjam.snappy.compress_raw(data)),
}


class UnreadableBatchError(Exception):
    """A batch that cannot be split into messages, because it is damaged or too large."""


class BatchMessage(NamedTuple):
    """A single message inside a batch.

    Attributes:
        metadata: The message's metadata.
        framed: All bytes of the message in the batch.
    """

    metadata: pb.SingleMessageMetadata
    framed: bytes


def _framed(metadata: pb.SingleMessageMetadata) -> bytes:
    head = metadata.SerializeToString()
    return _LENGTH.pack(len(head)) + head


_LEFT_OUT = _framed(pb.SingleMessageMetadata(payload_size=0, compacted_out=True))
"""The bytes that replace a removed message in a batch."""


def is_readable_batch(metadata: pb.MessageMetadata) -> bool:
    """Return True if an entry is an unencrypted batch, given its metadata."""
    return metadata.HasField("num_messages_in_batch") and not metadata.encryption_keys


def unpacked(metadata: pb.MessageMetadata, payload: bytes) -> bytes:
    """Return the decompressed payload of a batch.

    Raises:
        UnreadableBatchError: The payload cannot be decompressed.
    """
    try:
        return decompressed(metadata, payload, MOST_BATCH_BYTES)
    except DecompressionError:
        raise UnreadableBatchError from None


def messages_of(payload: bytes, count: int) -> Iterator[BatchMessage]:
    """Yield the messages of a batch, given its decompressed payload and the number of messages.

    Raises:
        UnreadableBatchError: There are fewer messages than ``count``, or ``count`` is below 1.
    """
    at = 0
    if count < 1:
        raise UnreadableBatchError
    for _ in range(count):
        if len(payload) < at + _LENGTH.size:
            raise UnreadableBatchError
        (size,) = _LENGTH.unpack_from(payload, at)
        start = at + _LENGTH.size + size
        try:
            metadata = pb.SingleMessageMetadata.FromString(payload[at + _LENGTH.size : start])
        except DecodeError:
            raise UnreadableBatchError from None
        end = start + metadata.payload_size
        if not start <= end <= len(payload):
            raise UnreadableBatchError
        yield BatchMessage(metadata, payload[at:end])
        at = end


def with_some(
    metadata: pb.MessageMetadata, messages: Sequence[BatchMessage], kept: Sequence[int]
) -> bytes:
    """Return the bytes of an entry that holds a batch reduced to the given messages.

    Each removed message is replaced by an empty message marked ``compacted_out``, so that the kept
    messages keep their index.

    Args:
        metadata: The batch's metadata.
        messages: All messages of the batch.
        kept: Indexes of the kept messages.
    """
    left = set(kept)
    payload = b"".join(
        [one.framed if index in left else _LEFT_OUT for index, one in enumerate(messages)]
    )
    changed = pb.MessageMetadata()
    changed.CopyFrom(metadata)
    changed.uncompressed_size = len(payload)
    changed.compacted_batch_indexes[:] = kept
    if metadata.compression != pb.NONE:
        if len(payload) <= MOST_PACKED_BYTES:
            payload = _packed(metadata.compression, payload)
        else:
            changed.ClearField("compression")
    head = changed.SerializeToString()
    body = _LENGTH.pack(len(head)) + head + payload
    return _CHECKSUM_MAGIC + _LENGTH.pack(google_crc32c.value(body)) + body


def _packed(compression: pb.CompressionType.ValueType, payload: bytes) -> bytes:
    if compression == pb.ZLIB:
        return zlib.compress(payload)
    return _PACKED[compression](payload)
