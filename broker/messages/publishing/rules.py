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
        max_producers_being_made: PRODUCER requests of one connection that may be under way.
        metadata_of: Reads the metadata of a message, or closes the connection.
    """

    max_payload_bytes: int = 0
    max_producers_being_made: int = 10_000
    metadata_of: Callable[[bytes], pb.MessageMetadata] = whole_metadata

    @staticmethod
    def of(config: BrokerConfig) -> PublishRules:
        """Return the bounds of a configuration."""
        if config.profile is Profile.PULSAR:
            return PublishRules(metadata_of=whatever_metadata)
        return PublishRules(max_payload_bytes=config.max_message_size)
