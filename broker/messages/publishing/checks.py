"""Checks of published messages, the errors that refuse them, and corrected publish times."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import proto.PulsarApi_pb2 as pb
from broker.messages.metadata import parse_metadata, payload_of, payload_start
from proto.errors import RemoteProtocolError
from proto.frames import verify_checksum
from server.configuration.common import Profile

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.configuration.config import BrokerConfig
    from broker.policies.effective import EffectivePolicies
    from limiter.clock import Clock

METADATA_BYTES = 262_144
"""The largest metadata of a message in bytes; parsing the worst metadata of this size takes 8
ms."""
LEAST_BYTES = 4
"""The least number of bytes of a message: those of its metadata's length."""


def whole_metadata(data: bytes) -> pb.MessageMetadata:
    """Return the metadata of a message, which must have all required fields.

    Raises:
        RemoteProtocolError: The metadata is unreadable, or lacks a required field.
    """
    metadata = parse_metadata(data)
    if not metadata.IsInitialized():
        raise RemoteProtocolError("a message whose metadata lacks a required field")
    return metadata


def whatever_metadata(data: bytes) -> pb.MessageMetadata:
    """Return the metadata of a message; empty metadata if it cannot be read.

    A real broker accepts and stores such messages (recorded).

    Raises:
        RemoteProtocolError: The message is shorter than the announced length of its metadata.
    """
    try:
        return parse_metadata(data)
    except RemoteProtocolError:
        if len(data) < LEAST_BYTES:
            raise
        return pb.MessageMetadata()


class PublishRules(NamedTuple):
    """The limits and checks that a broker applies to published messages.

    Attributes:
        max_payload_bytes: The largest payload (maxMessageSize); with 0 only frames are limited, as
            on a real broker (profile pulsar).
        max_metadata_bytes: The largest metadata of a message; 0 for no limit.
        max_producers_being_made: The largest number of PRODUCER requests in flight on a connection.
        metadata_of: Reads the metadata of a message, or closes the connection.
        compares_claims: True to check the producer name and the batch size that a message claims;
            False to trust them (recorded).
    """

    max_payload_bytes: int = 0
    max_metadata_bytes: int = 0
    max_producers_being_made: int = 10_000
    metadata_of: Callable[[bytes], pb.MessageMetadata] = whole_metadata
    compares_claims: bool = False

    @staticmethod
    def of(config: BrokerConfig) -> PublishRules:
        """Return the limits and checks that a broker's configuration demands."""
        if config.profile is Profile.PULSAR:
            return PublishRules(metadata_of=whatever_metadata)
        return PublishRules(config.max_message_size, METADATA_BYTES, compares_claims=True)


LEAST_MESSAGE_BYTES = 6
"""The least number of bytes of a message in a batch: a length, and metadata for an empty
payload."""
MOST_COMPRESSED = {pb.LZ4: 255, pb.ZLIB: 1_032, pb.ZSTD: 32_768, pb.SNAPPY: 64}
"""The largest possible ratio of uncompressed to compressed bytes, by compression."""
MOST_IN_BATCH = 1_000_000
"""The largest number of messages in a batch, whatever its announced size."""


class SendRefusal(NamedTuple):
    """The error code and text of a SEND_ERROR command, which refuses a message."""

    code: pb.ServerError.ValueType
    text: str


_TOO_LARGE = SendRefusal(pb.NotAllowedError, "Exceed maximum message size")
_NOT_ENCRYPTED = SendRefusal(pb.MetadataError, "Messages must be encrypted")
_OTHERS_NAME = SendRefusal(
    pb.NotAllowedError,
    "The message has another producer_name than its producer, whose messages would count as "
    "duplicates: deduplication is on",
)
_TRANSACTIONS_OFF = SendRefusal(pb.NotAllowedError, "Transaction buffer disable!")
_NO_SHADOW = SendRefusal(
    pb.NotAllowedError, "Only shadow topic supports sending messages with messageId"
)
_CLOSED = SendRefusal(pb.PersistenceError, "Producer is closed")
_CHECKSUM_FAILED = SendRefusal(pb.ChecksumError, "Checksum failed on the broker")


def refusal_of_frame(sent: pb.CommandSend, data: bytes, *, is_open: bool) -> SendRefusal | None:
    """Return the error for a SEND with a message id, of a closing producer, or damaged.

    Return None for any other SEND; its metadata is not read.

    Args:
        sent: The command.
        data: Checksum, metadata and payload.
        is_open: False if the producer waits for its last receipt.
    """
    if sent.HasField("message_id") and not _is_in_transaction(sent):
        return _NO_SHADOW
    if not is_open:
        return _CLOSED
    return None if verify_checksum(data) else _CHECKSUM_FAILED


def _is_in_transaction(sent: pb.CommandSend) -> bool:
    return sent.HasField("txnid_most_bits") and sent.HasField("txnid_least_bits")


def refusal_of_metadata(data: bytes, rules: PublishRules) -> SendRefusal | None:
    """Return the error for a message whose metadata is too large to parse; otherwise None."""
    most = rules.max_metadata_bytes
    if not 0 < most < len(data) or not most < payload_start(data) <= len(data):
        return None
    text = f"Exceed maximum size of metadata of {most} bytes"
    return SendRefusal(pb.NotAllowedError, text)


def refusal_of(
    sent: pb.CommandSend,
    data: bytes,
    metadata: pb.MessageMetadata,
    policies: EffectivePolicies,
    rules: PublishRules,
    clock: Clock,
) -> SendRefusal | None:
    """Return the error that refuses a message; None if the message may be stored."""
    if policies.encryption_required and not metadata.encryption_keys:
        return _NOT_ENCRYPTED
    size, limit = len(data), policies.max_message_bytes
    if 0 < limit < size and not sent.is_chunk:
        return _TOO_LARGE
    limit = rules.max_payload_bytes
    if 0 < limit < size and len(payload_of(data)) > limit:
        return _too_large_payload(limit)
    longest = policies.max_delivery_delay_ms
    if 0 < longest < metadata.deliver_at_time - clock.wall_ms():
        text = f"Exceeds max allowed delivery delay of {longest} milliseconds"
        return SendRefusal(pb.NotAllowedError, text)
    return _TRANSACTIONS_OFF if _is_in_transaction(sent) else None


def refusal_of_claims(
    data: bytes, metadata: pb.MessageMetadata, policies: EffectivePolicies, producer: str
) -> SendRefusal | None:
    """Return the error for a message that claims another producer's name or an impossible batch.

    Return None if the message is plausible.
    """
    if policies.deduplication and metadata.producer_name != producer:
        return _OTHERS_NAME
    return _impossible_batch(data, metadata) if metadata.num_messages_in_batch != 1 else None


def _impossible_batch(data: bytes, metadata: pb.MessageMetadata) -> SendRefusal | None:
    """Return the error for a batch too small for the number of messages that it claims, or None.

    Consumers could not read such a batch.
    """
    count = metadata.num_messages_in_batch
    size = len(data) - payload_start(data)
    if metadata.compression != pb.NONE:
        most_size = size * MOST_COMPRESSED.get(metadata.compression, 1)
        size = min(metadata.uncompressed_size, most_size)
    most = MOST_IN_BATCH
    if not metadata.encryption_keys:  # Encrypted sizes are unknown.
        most = min(most, size // LEAST_MESSAGE_BYTES)
    if 0 < count <= most:
        return None
    text = f"A batch of {size} bytes cannot have num_messages_in_batch={count}"
    return SendRefusal(pb.NotAllowedError, text)


def _too_large_payload(limit: int) -> SendRefusal:
    text = f"Exceed maximum message size of {limit} bytes: send less, or raise maxMessageSize"
    return SendRefusal(pb.NotAllowedError, text)


MOST_AHEAD_MS = 3_600_000
"""The largest accepted lead of a producer's clock over the broker's, in ms."""


class PublishTimes:
    """The publish times of a topic's entries, corrected so that they never decrease.

    Entries are found by binary search, which needs ascending times. An entry dated 1970 would make
    all earlier entries expire, and an entry dated 3000 would keep all later entries. Consumers
    still receive the original times.

    Attributes:
        last: The time of the last entry, in ms since 1970; 0 without entries.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._believed_until = 0
        self.last = 0

    def next(self, said: int) -> int:
        """Return the next entry's publish time (ms since 1970), corrected if implausible."""
        if not self.last <= said <= self._believed_until:
            now = self._clock.wall_ms()
            self._believed_until = now + MOST_AHEAD_MS
            if said > self._believed_until:
                said = now
            if self.last > self._believed_until:
                self.last = 0  # The broker's clock was ahead, and was set back.
        return max(self.last, said)
