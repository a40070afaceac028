"""Messages as producers send them: metadata and payload."""

import struct

import proto.PulsarApi_pb2 as pb

_LENGTH = struct.Struct(">I")


def message(payload: bytes, *, key: str | None = None, count: int = 1, **fields: object) -> bytes:
    """Return the bytes of an entry, without a checksum.

    Args:
        payload: Behind the metadata.
        key: Its partition key.
        count: Messages in its batch; 1 for no batch.
        fields: More of its metadata.
    """
    metadata = pb.MessageMetadata(producer_name="p", sequence_id=1, publish_time=1, **fields)
    if key is not None:
        metadata.partition_key = key
    if count > 1:
        metadata.num_messages_in_batch = count
    head = metadata.SerializeToString()
    return _LENGTH.pack(len(head)) + head + payload


def single(payload: bytes, **fields: object) -> bytes:
    """Return a message of a batch: its own metadata, and its payload."""
    head = pb.SingleMessageMetadata(payload_size=len(payload), **fields).SerializeToString()
    return _LENGTH.pack(len(head)) + head + payload
