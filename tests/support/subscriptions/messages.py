"""Producers' messages: metadata and payload."""

import struct

import proto.PulsarApi_pb2 as pb

_LENGTH = struct.Struct(">I")


def message(payload: bytes, *, key: str | None = None, count: int = 1, **fields: object) -> bytes:
    """Return an entry's bytes, without checksum.

    Args:
        payload: Behind the metadata.
        key: Partition key.
        count: Messages in its batch; 1 for no batch.
        fields: More metadata.
    """
    metadata = pb.MessageMetadata(producer_name="p", sequence_id=1, publish_time=1, **fields)
    if key is not None:
        metadata.partition_key = key
    if count > 1:
        metadata.num_messages_in_batch = count
    head = metadata.SerializeToString()
    return _LENGTH.pack(len(head)) + head + payload


def single(payload: bytes, **fields: object) -> bytes:
    """Return a batch's single message: metadata and payload."""
    head = pb.SingleMessageMetadata(payload_size=len(payload), **fields).SerializeToString()
    return _LENGTH.pack(len(head)) + head + payload
