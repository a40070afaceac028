"""The key of a message, used by Key_Shared to choose a consumer."""

from __future__ import annotations

import binascii
from typing import Any

import mmh3
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

import proto.PulsarApi_pb2 as pb
from broker.messages.metadata import metadata_bytes
from proto.errors import RemoteProtocolError

NO_KEY = b"NONE_KEY"
"""Upstream's key of a message with unreadable metadata, stored in profile pulsar."""
_FIELDS = frozenset(
    ("producer_name", "sequence_id", "partition_key", "partition_key_b64_encoded", "ordering_key")
)


def _key_fields() -> Any:  # noqa: ANN401
    """Return a message type with only the key fields of MessageMetadata.

    Skips properties, which may number thousands: each delivery reads the key, and parsing all of
    256 KiB takes 8 ms.
    """
    whole = DescriptorProto()
    pb.MessageMetadata.DESCRIPTOR.CopyToProto(whole)
    file = FileDescriptorProto(name="sticky_key.proto", package="sticky_key", syntax="proto2")
    fields = file.message_type.add(name="KeyFields").field
    fields.extend(one for one in whole.field if one.name in _FIELDS)
    for one in fields:
        one.ClearField("options")
        one.label = one.LABEL_OPTIONAL
        if one.type == one.TYPE_STRING:
            one.type = one.TYPE_BYTES
    pool = DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName("sticky_key.KeyFields"))


_KeyFields = _key_fields()


def key_of(data: bytes) -> bytes:
    """Return the key of an entry: ordering key, else key, else producer name and sequence id.

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


def murmur(data: bytes) -> int:
    """Return the Murmur3 hash (32 bit, x86, seed 0) of some bytes without the sign: 0..2^31-1.

    Source: upstream Murmur3_32Hash.makeHash.
    """
    return mmh3.hash(data, 0, signed=False) & 0x7FFFFFFF
