"""The bounds of what one message, and one connection, may publish."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import proto.PulsarApi_pb2 as pb
from broker.messages.metadata import parse_metadata
from proto.errors import RemoteProtocolError
from server.configuration.common import Profile

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.configuration.config import BrokerConfig

METADATA_BYTES = 262_144
"""Bytes of the largest metadata; the worst of this size takes 8 ms to parse, and each time."""
LEAST_BYTES = 4
"""What a message has at least: the length of its metadata."""


def whole_metadata(data: bytes) -> pb.MessageMetadata:
    """Return the metadata of a message.

    Raises:
        RemoteProtocolError: It cannot be read, or lacks a required field.
    """
    metadata = parse_metadata(data)
    if not metadata.IsInitialized():
        raise RemoteProtocolError("a message whose metadata lacks a required field")
    return metadata


def whatever_metadata(data: bytes) -> pb.MessageMetadata:
    """Return the metadata of a message; an empty one where it cannot be read.

    As recorded of a real broker, which stores what it does not read.

    Raises:
        RemoteProtocolError: There is not even room for its length.
    """
    try:
        return parse_metadata(data)
    except RemoteProtocolError:
        if len(data) < LEAST_BYTES:
            raise
        return pb.MessageMetadata()


class PublishRules(NamedTuple):
    """The bounds.

    Attributes:
        max_payload_bytes: maxMessageSize, compared with each payload; 0: only the limit of frames
            counts, as on a real broker (profile pulsar).
        max_metadata_bytes: Most bytes of a message's metadata; 0 for no limit.
        max_producers_being_made: PRODUCER requests of one connection that may be under way.
        metadata_of: Reads the metadata of a message, or closes the connection.
        compares_claims: What a message says of its producer and of its batch is compared with
            what is known of them; else it is believed (recorded).
    """

    max_payload_bytes: int = 0
    max_metadata_bytes: int = 0
    max_producers_being_made: int = 10_000
    metadata_of: Callable[[bytes], pb.MessageMetadata] = whole_metadata
    compares_claims: bool = False

    @staticmethod
    def of(config: BrokerConfig) -> PublishRules:
        """Return the bounds of a configuration."""
        if config.profile is Profile.PULSAR:
            return PublishRules(metadata_of=whatever_metadata)
        return PublishRules(config.max_message_size, METADATA_BYTES, compares_claims=True)
