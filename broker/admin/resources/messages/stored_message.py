"""A stored message as a response: the payload as body, the rest in headers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from aiohttp import web

from broker.admin.requests import FailsUpstreamError
from broker.admin.resources.messages.consumer_stats import moment
from broker.messages.compaction.batches import DecompressionError, decompressed
from broker.messages.metadata import parse_metadata, payload_of
from proto.errors import RemoteProtocolError

if TYPE_CHECKING:
    import proto.PulsarApi_pb2 as pb
    from broker.messages.entry import Entry

_UNFIT = dict.fromkeys((*range(32), 127))
"""Characters forbidden in a header, left out."""


def message_response(entry: Entry, max_bytes: int) -> web.Response:
    """Return the response with an entry: a message, or a whole batch.

    Args:
        entry: The stored entry.
        max_bytes: Most bytes of a decompressed payload.

    Raises:
        FailsUpstreamError: The entry is unreadable, or cannot be decompressed.
    """
    try:
        metadata = parse_metadata(entry.data)
        body = payload_of(entry.data)
        if not metadata.encryption_keys:
            body = decompressed(metadata, body, max_bytes)
    except (RemoteProtocolError, DecompressionError) as error:
        raise FailsUpstreamError(422, str(error)) from None
    fields = {f"X-Pulsar-{name}": _header(text) for name, text in _fields(entry, metadata).items()}
    return web.Response(body=body, headers={**fields, "Content-Type": "application/json"})


def _fields(entry: Entry, metadata: pb.MessageMetadata) -> dict[str, str]:
    fields = {
        "Message-ID": str(entry.position),
        "producer-name": metadata.producer_name,
        "sequence-id": str(metadata.sequence_id),
        "publish-time": _moment(metadata.publish_time),
        "Is-Encrypted": str(bool(metadata.encryption_keys)).lower(),
        "txn-uncommitted": "false",
    }
    if metadata.properties:
        properties = {pair.key: pair.value for pair in metadata.properties}
        fields["PROPERTY"] = json.dumps(properties, separators=(",", ":"))
    given = {field.name: value for field, value in metadata.ListFields()}
    fields |= {name: _text(given[field]) for name, field in _OPTIONAL.items() if field in given}
    fields |= {name: _moment(given[field]) for name, field in _MOMENTS.items() if given.get(field)}
    if metadata.replicate_to:
        fields["replicated-to"] = ",".join(metadata.replicate_to)
    return fields


_OPTIONAL = {
    "num-batch-message": "num_messages_in_batch",
    "partition-key": "partition_key",
    "partition-key-b64-encoded": "partition_key_b64_encoded",
    "ordering-key": "ordering_key",
    "replicated-from": "replicated_from",
    "uuid": "uuid",
    "num-chunks-from-msg": "num_chunks_from_msg",
    "total-chunk-msg-size": "total_chunk_msg_size",
    "chunk-id": "chunk_id",
    "null-value": "null_value",
    "null-partition-key": "null_partition_key",
    "schema-version": "schema_version",
}
_MOMENTS = {"event-time": "event_time", "deliver-at-time": "deliver_at_time"}


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.hex()
    return str(value).lower() if isinstance(value, bool) else str(value)


def _header(text: str) -> str:
    return text.translate(_UNFIT)


def _moment(milliseconds: int) -> str:
    """Return a client's time, also an impossible time."""
    try:
        return moment(milliseconds)
    except (OverflowError, ValueError, OSError):
        return str(milliseconds)
