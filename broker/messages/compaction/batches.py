"""The messages of a batch, one by one, and a batch of which only some are left."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, NamedTuple

import google_crc32c
import pyarrow as pa
from google.protobuf.message import DecodeError

import proto.PulsarApi_pb2 as pb
from broker.messages.compaction.decompression import DecompressionError, decompressed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MOST_BATCH_BYTES = 5 * 1024 * 1024
"""A batch that is larger when it is unpacked would hold the event loop; it is kept as it is."""
MOST_PACKED_BYTES = 1024 * 1024
"""A batch that is larger is not packed again when messages have left it, for the same reason."""

_LENGTH = struct.Struct(">I")
_CHECKSUM_MAGIC = b"\x0e\x01"
_CODECS = {pb.LZ4: "lz4_raw", pb.ZSTD: "zstd", pb.SNAPPY: "snappy"}


class UnreadableBatchError(Exception):
    """A batch cannot be taken apart: it is damaged, or too large."""


class BatchMessage(NamedTuple):
    """A message in a batch.

    Attributes:
        metadata: Its own.
        framed: All its bytes in the batch.
    """

    metadata: pb.SingleMessageMetadata
    framed: bytes


def _framed(metadata: pb.SingleMessageMetadata) -> bytes:
    head = metadata.SerializeToString()
    return _LENGTH.pack(len(head)) + head


_LEFT_OUT = _framed(pb.SingleMessageMetadata(payload_size=0, compacted_out=True))
"""Stands in the batch for a message that is not there any more."""


def is_readable_batch(metadata: pb.MessageMetadata) -> bool:
    """Tell whether an entry is a batch whose messages can be told apart: it is not encrypted."""
    return metadata.HasField("num_messages_in_batch") and not metadata.encryption_keys


def unpacked(metadata: pb.MessageMetadata, payload: bytes) -> bytes:
    """Return the payload of a batch without compression.

    Raises:
        UnreadableBatchError: It cannot be unpacked.
    """
    try:
        return decompressed(metadata, payload, MOST_BATCH_BYTES)
    except DecompressionError:
        raise UnreadableBatchError from None


def messages_of(payload: bytes, count: int) -> Iterator[BatchMessage]:
    """Yield the messages of a batch.

    Args:
        payload: Without compression.
        count: How many there are.

    Raises:
        UnreadableBatchError: There are fewer, or there is none.
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
    """Return the bytes of an entry: a batch in which only some messages are left.

    The others are there, marked and empty, so that all keep their index.

    Args:
        metadata: The batch's.
        messages: All of it.
        kept: Indexes of those that are left.
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
    data: bytes = pa.compress(payload, codec=_CODECS[compression], asbytes=True)
    return data
