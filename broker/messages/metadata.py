"""Functions that read those fields of message metadata that a broker needs."""

from __future__ import annotations

import binascii
import struct
from hashlib import blake2b
from typing import Any, NamedTuple

from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

import proto.PulsarApi_pb2 as pb
from proto.errors import RemoteProtocolError

_LENGTH = struct.Struct(">I")
_CHECKSUM_MAGIC = b"\x0e\x01"
_CHECKSUM_BYTES = 6


class MessageDigest(NamedTuple):
    """The fields of an entry's metadata that are stored beside its bytes.

    Attributes:
        message_count: Messages in the batch; 1 without a batch.
        publish_time: The producer's publish time, in ms since 1970.
        deliver_at: Earliest delivery, in ms since 1970; 0 for immediately.
    """

    message_count: int
    publish_time: int
    deliver_at: int


def parse_metadata(data: bytes) -> pb.MessageMetadata:
    """Parse the metadata in an entry's bytes.

    An entry consists of a checksum, which may be missing, its metadata, and the payload.

    Raises:
        RemoteProtocolError: The entry has no readable metadata.
    """
    try:
        return pb.MessageMetadata.FromString(metadata_bytes(data))
    except DecodeError:
        raise RemoteProtocolError("a message whose metadata cannot be read") from None


def metadata_bytes(data: bytes) -> bytes:
    """Return the part of an entry's bytes that is its encoded metadata.

    Raises:
        RemoteProtocolError: The entry has no complete metadata.
    """
    start = _CHECKSUM_BYTES if data.startswith(_CHECKSUM_MAGIC) else 0
    if len(data) < start + _LENGTH.size:
        raise RemoteProtocolError("a message without metadata")
    (size,) = _LENGTH.unpack_from(data, start)
    first = start + _LENGTH.size
    if first + size > len(data):
        raise RemoteProtocolError(f"metadata of {size} bytes in a message of {len(data)} bytes")
    return data[first : first + size]


def digest_of(metadata: pb.MessageMetadata) -> MessageDigest:
    """Return the fields of an entry's metadata that are stored beside its bytes.

    A batch counts as at least one message: a smaller number would give consumers more permits with
    each delivery (recorded from a real broker).
    """
    messages = max(1, metadata.num_messages_in_batch)
    return MessageDigest(messages, metadata.publish_time, metadata.deliver_at_time)


def is_part(metadata: pb.MessageMetadata) -> bool:
    """Return True for each chunk of a chunked message except the last chunk."""
    return metadata.chunk_id < metadata.num_chunks_from_msg - 1


def payload_start(data: bytes) -> int:
    """Return the offset of the payload in the bytes of an entry with readable metadata."""
    start = _CHECKSUM_BYTES if data.startswith(_CHECKSUM_MAGIC) else 0
    (size,) = _LENGTH.unpack_from(data, start)
    return start + _LENGTH.size + int(size)


def payload_of(data: bytes) -> bytes:
    """Return the payload of an entry with readable metadata."""
    return data[payload_start(data) :]


NO_KEY = b"NONE_KEY"
"""Upstream's key of a message with unreadable metadata, stored in profile pulsar."""


def _class_with(*names: str) -> Any:  # noqa: ANN401
    """Return a Protobuf class with only the given fields of MessageMetadata, all optional.

    The class skips properties, of which a message may have thousands. Each delivery reads the key,
    and parsing 256 KiB of complete metadata would take 8 ms.
    """
    whole = DescriptorProto()
    pb.MessageMetadata.DESCRIPTOR.CopyToProto(whole)
    package = names[0]
    file = FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto2")
    fields = file.message_type.add(name="Fields").field
    fields.extend(one for one in whole.field if one.name in names)
    for one in fields:
        one.ClearField("options")
        one.label = one.LABEL_OPTIONAL
        if one.type == one.TYPE_STRING:
            one.type = one.TYPE_BYTES
    pool = DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName(f"{package}.Fields"))


_KeyFields = _class_with(
    "producer_name", "sequence_id", "partition_key", "partition_key_b64_encoded", "ordering_key"
)
_ChunkFields = _class_with("uuid", "num_chunks_from_msg", "chunk_id")
_UUID_TAG = b"\xd2\x01"
_UUID_BYTES = 16


class Chunk(NamedTuple):
    """An entry's place in a chunked message.

    Attributes:
        uuid: A hash of the message's id, which may be as long as its client likes.
        number: The chunk's number; 0 for the first.
        is_last: True for the message's last chunk.
    """

    uuid: bytes
    number: int
    is_last: bool


def chunk_of(data: bytes) -> Chunk | None:
    """Return an entry's place in a chunked message; None for any other entry."""
    try:
        if data.find(_UUID_TAG, 0, payload_start(data)) < 0:
            return None
        found = _ChunkFields.FromString(metadata_bytes(data))
    except (struct.error, RemoteProtocolError, DecodeError):
        return None
    if not all(map(found.HasField, ("uuid", "chunk_id", "num_chunks_from_msg"))):
        return None
    uuid = blake2b(found.uuid, digest_size=_UUID_BYTES).digest()
    return Chunk(uuid, found.chunk_id, found.chunk_id == found.num_chunks_from_msg - 1)


def key_of(data: bytes) -> bytes:
    """Return the key that decides which Key_Shared consumer receives an entry.

    The ordering key; else the partition key; else the producer's name and the sequence id.

    Source: upstream Commands.peekStickyKey.
    """
    try:
        found = _KeyFields.FromString(metadata_bytes(data))
    except (RemoteProtocolError, DecodeError):
        return NO_KEY
    key: bytes
    if found.HasField("ordering_key"):
        key = found.ordering_key
    elif found.HasField("partition_key"):
        key = found.partition_key
        if found.partition_key_b64_encoded:
            key = _decoded(key)
    else:
        key = b"%b-%d" % (found.producer_name, found.sequence_id)
    return key


def _decoded(key: bytes) -> bytes:
    try:
        return binascii.a2b_base64(key, strict_mode=True)
    except binascii.Error:
        # Flagged, but not base64: the raw key is used.
        return key
