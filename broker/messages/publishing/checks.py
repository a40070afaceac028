"""Checks of a published message, and the texts of refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import proto.PulsarApi_pb2 as pb
from broker.messages.metadata import payload_of, payload_start

if TYPE_CHECKING:
    from broker.messages.publishing.rules import PublishRules
    from broker.policies.effective import EffectivePolicies
    from limiter.clock import Clock


LEAST_MESSAGE_BYTES = 6
"""Least bytes of a message in a batch: a length, and metadata with an empty payload."""
MOST_COMPRESSED = {pb.LZ4: 255, pb.ZLIB: 1_032, pb.ZSTD: 32_768, pb.SNAPPY: 64}
"""Largest possible ratio of uncompressed to compressed bytes."""
MOST_IN_BATCH = 1_000_000
"""Most messages in a batch, regardless of the announced size."""


class SendRefusal(NamedTuple):
    """The code and text of a SEND_ERROR."""

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


def refusal_of_metadata(data: bytes, rules: PublishRules) -> SendRefusal | None:
    """Refuse oversized metadata before parsing; return None if acceptable."""
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
    """Return the reason to refuse a message; None to store the message.

    Args:
        sent: The command.
        data: Checksum, metadata and payload.
        metadata: The parsed metadata.
        policies: The topic's policies.
        rules: The broker's rules.
        clock: The time of day.
    """
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
    if sent.HasField("txnid_most_bits") and sent.HasField("txnid_least_bits"):
        return _TRANSACTIONS_OFF
    return None


def refusal_of_claims(
    data: bytes, metadata: pb.MessageMetadata, policies: EffectivePolicies, producer: str
) -> SendRefusal | None:
    """Refuse a message with impossible claims; return None if plausible.

    Args:
        data: Checksum, metadata and payload.
        metadata: The parsed metadata.
        policies: The topic's policies.
        producer: The sending producer's name.
    """
    if policies.deduplication and metadata.producer_name != producer:
        return _OTHERS_NAME
    return _impossible_batch(data, metadata) if metadata.num_messages_in_batch != 1 else None


def _impossible_batch(data: bytes, metadata: pb.MessageMetadata) -> SendRefusal | None:
    """Refuse a batch with an impossible number of messages: consumers could not read the batch."""
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
