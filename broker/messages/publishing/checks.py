"""The checks of a message that is sent, and the texts with which one is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import proto.PulsarApi_pb2 as pb
from broker.messages.metadata import payload_of

if TYPE_CHECKING:
    from broker.messages.publishing.rules import PublishRules
    from broker.policies.effective import EffectivePolicies
    from limiter.clock import Clock


class SendRefusal(NamedTuple):
    """The code and text of a SEND_ERROR."""

    code: pb.ServerError.ValueType
    text: str


_TOO_LARGE = SendRefusal(pb.NotAllowedError, "Exceed maximum message size")
_NOT_ENCRYPTED = SendRefusal(pb.MetadataError, "Messages must be encrypted")
_TRANSACTIONS_OFF = SendRefusal(pb.NotAllowedError, "Transaction buffer disable!")


def refusal_of(
    sent: pb.CommandSend,
    data: bytes,
    metadata: pb.MessageMetadata,
    policies: EffectivePolicies,
    rules: PublishRules,
    clock: Clock,
) -> SendRefusal | None:
    """Return why a message is not stored; None if it is.

    Args:
        sent: The command.
        data: Checksum, metadata and payload.
        metadata: As read from them.
        policies: The topic's.
        rules: The broker's.
        clock: Tells the time of day.
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


def _too_large_payload(limit: int) -> SendRefusal:
    text = f"Exceed maximum message size of {limit} bytes: send less, or raise maxMessageSize"
    return SendRefusal(pb.NotAllowedError, text)
