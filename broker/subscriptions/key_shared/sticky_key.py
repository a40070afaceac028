"""The key by which Key_Shared chooses a consumer for a message."""

from __future__ import annotations

import binascii
from typing import TYPE_CHECKING

from broker.messages.metadata import parse_metadata
from proto.errors import RemoteProtocolError

if TYPE_CHECKING:
    import proto.PulsarApi_pb2 as pb

NO_KEY = b"NONE_KEY"
"""Upstream's key of a message whose metadata cannot be read: profile pulsar stores such too."""


def key_of(data: bytes) -> bytes:
    """Return the key of an entry's bytes."""
    try:
        return sticky_key(parse_metadata(data))
    except RemoteProtocolError:
        return NO_KEY


def sticky_key(metadata: pb.MessageMetadata) -> bytes:
    """Return the key of a message: the ordering key, else its key, else its own name and number.

    Source: upstream Commands.peekStickyKey.
    """
    if metadata.HasField("ordering_key"):
        return metadata.ordering_key
    if metadata.HasField("partition_key"):
        key = metadata.partition_key.encode()
        return _decoded(key) if metadata.partition_key_b64_encoded else key
    return f"{metadata.producer_name}-{metadata.sequence_id}".encode()


def _decoded(key: bytes) -> bytes:
    try:
        return binascii.a2b_base64(key, strict_mode=True)
    except binascii.Error:
        # Flagged, but no base64: as it stands it is a key as well.
        return key
