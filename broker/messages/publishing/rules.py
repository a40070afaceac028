"""Limits of publishing for one message, and for one connection."""

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
"""Largest metadata in bytes; parsing the worst case of this size takes 8 ms."""
LEAST_BYTES = 4
"""Least bytes of a message: the length of the metadata."""


def whole_metadata(data: bytes) -> pb.MessageMetadata:
    """Return the metadata of a message.

    Raises:
        RemoteProtocolError: Unreadable, or without a required field.
    """
    metadata = parse_metadata(data)
    if not metadata.IsInitialized():
        raise RemoteProtocolError("a message whose metadata lacks a required field")
    return metadata


def whatever_metadata(data: bytes) -> pb.MessageMetadata:
    """Return the metadata of a message; empty metadata if unreadable.

    As recorded of a real broker, which stores unreadable messages.

    Raises:
        RemoteProtocolError: Too short for the metadata's length.
    """
    try:
        return parse_metadata(data)
    except RemoteProtocolError:
        if len(data) < LEAST_BYTES:
            raise
        return pb.MessageMetadata()


class PublishRules(NamedTuple):
    """The limits.

    Attributes:
        max_payload_bytes: maxMessageSize, compared with each payload; 0: only frames are limited,
            as on a real broker (profile pulsar).
        max_metadata_bytes: Most bytes of a message's metadata; 0 for no limit.
        max_producers_being_made: Most PRODUCER requests of a connection in flight.
        metadata_of: Reads the metadata of a message, or closes the connection.
        compares_claims: Check a message's claims about producer and batch; otherwise claims are
            trusted (recorded).
    """

    max_payload_bytes: int = 0
    max_metadata_bytes: int = 0
    max_producers_being_made: int = 10_000
    metadata_of: Callable[[bytes], pb.MessageMetadata] = whole_metadata
    compares_claims: bool = False

    @staticmethod
    def of(config: BrokerConfig) -> PublishRules:
        """Return the limits of a configuration."""
        if config.profile is Profile.PULSAR:
            return PublishRules(metadata_of=whatever_metadata)
        return PublishRules(config.max_message_size, METADATA_BYTES, compares_claims=True)
