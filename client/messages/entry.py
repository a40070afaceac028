"""Entries received from a broker, each with a message, a batch, or a chunk."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import google_crc32c
from google.protobuf.message import DecodeError

import proto.PulsarApi_pb2 as pb
from client.messages.compression import decompress
from client.messages.errors import BrokenEntryError, TooLargeEntryError
from client.messages.message import EntryHead, Message
from proto.errors import RemoteProtocolError
from proto.frames import command_size_in
from proto.parsing.unparsed import fields, mended

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

    from client.messages.message import Decoding
    from proto.frames import Frame

MAX_UNCOMPRESSED_BYTES = 64 * 1024 * 1024
"""Maximum size of a decompressed entry in bytes, with the default memory limit."""
_MOST_BYTES = 2**31 - 1
"""Maximum size of a message in bytes, as the protocol has signed 32-bit sizes."""
MOST_AT_ONCE = 1_000
"""Maximum number of messages decoded from a batch in a row, which takes a few milliseconds."""
MOST_BYTES_AT_ONCE = 1_048_576
"""Maximum number of bytes decoded from a batch in a row, which takes a few milliseconds."""
MENDED_BYTES = 128
"""Cost of decoding a byte of metadata with invalid UTF-8, in bytes of valid metadata."""
MOST_MENDED_BYTES = 16_384
"""Maximum size in bytes of metadata whose invalid UTF-8 is repaired."""
LARGE_METADATA_BYTES = 131_072
"""Size in bytes above which the fields of metadata are counted before parsing."""
MOST_FIELDS = 4_000
"""Maximum number of fields in large metadata, since each takes ten times its size once parsed."""
LEAST_MESSAGE_BYTES = 6
"""Size in bytes of the smallest message in a batch: the metadata's length, and a size."""

_SINGLE = pb.SingleMessageMetadata.DESCRIPTOR
_LENGTH = struct.Struct(">I")
_BROKER_METADATA_MAGIC = b"\x0e\x02"
_CHECKSUM_MAGIC = b"\x0e\x01"
_MAGIC_BYTES = 2
_HEADER_BYTES = _MAGIC_BYTES + _LENGTH.size


def largest_message_bytes(memory_limit_bytes: int) -> int:
    """Return the largest size in bytes of a message that a client's memory limit allows.

    A memory limit of 0 means that there is no limit.
    """
    return (
        max(MAX_UNCOMPRESSED_BYTES, memory_limit_bytes) if memory_limit_bytes > 0 else _MOST_BYTES
    )


@dataclass(frozen=True, slots=True)
class EntrySource:
    """The settings of a consumer that determine how its entries are decoded.

    Attributes:
        topic_name: Full name of the topic or partition.
        schema: Schema that decodes the values.
        max_uncompressed_bytes: Maximum bytes of a decompressed entry.
        takes_encrypted: Whether to deliver encrypted entries undecrypted, instead of treating them
            as broken.
    """

    topic_name: str
    schema: Decoding
    max_uncompressed_bytes: int = MAX_UNCOMPRESSED_BYTES
    takes_encrypted: bool = False


class Entry:
    """A received entry, whose messages are decoded at once or in steps.

    Attributes:
        head: The fields common to all messages of the entry.
        payload: The payload as received.
        is_chunk: Whether the entry is a chunk: see ChunkAssembly.
        most_bytes: Maximum size after decompression, in bytes.
    """

    __slots__ = (
        "_at",
        "_compression",
        "_left_bits",
        "_next_index",
        "_uncompressed",
        "_uncompressed_size",
        "head",
        "is_chunk",
        "most_bytes",
        "payload",
    )

    def __init__(
        self, head: EntryHead, payload: bytes, left_bits: bytes | None, source: EntrySource
    ) -> None:
        metadata = head.metadata
        self.head = head
        self.payload = payload
        is_encrypted = bool(metadata.encryption_keys)
        self.is_chunk = metadata.num_chunks_from_msg > 1 and not is_encrypted
        self._compression = pb.NONE if is_encrypted else metadata.compression
        self._uncompressed_size = metadata.uncompressed_size
        self.most_bytes = source.max_uncompressed_bytes
        self._left_bits = left_bits
        self._uncompressed: bytes | None = None
        self._at = 0
        self._next_index = 0

    @property
    def uncompressed_bytes(self) -> int:
        """Size of the payload after decompression in bytes, actual or announced."""
        if self._compression:
            return self._uncompressed_size
        return len(self._uncompressed or self.payload)

    @property
    def left(self) -> int:
        """Number of messages in the entry that are not decoded yet."""
        return max(1, self.head.batch_size) - self._next_index

    def uncompress(self) -> None:
        """Decompress the payload now, instead of in the first ``take``.

        Call it in a thread if ``decompressing_takes_long``.

        Raises:
            BrokenEntryError: The payload is damaged.
        """
        if self._uncompressed is not None:
            return
        size, limit = self._uncompressed_size, self.most_bytes
        if self._compression and size > limit:
            raise TooLargeEntryError(size, limit)
        self._uncompressed = decompress(self._compression, self.payload, size)
        self.payload = b""

    def take(self, most: int = MOST_AT_ONCE) -> list[Message]:
        """Decode the next messages of the entry, without acknowledged and compacted ones.

        Invalid UTF-8 in texts is replaced, as a broker does.

        Args:
            most: Maximum number of messages of a batch to decode; ``left`` counts the rest.

        Raises:
            BrokenEntryError: The entry is damaged; messages taken before are valid.
        """
        self.uncompress()
        payload = self._uncompressed or b""
        if self.head.batch_size == 0:
            self._next_index = 1
            return [Message(self.head, None, payload, -1)]
        try:
            messages = self._split(payload, min(self._next_index + most, self.head.batch_size))
        except (struct.error, DecodeError):
            raise _broken_batch(self.head) from None
        if not self.left:
            self._uncompressed = b""
        return messages

    def _split(self, payload: bytes, stop: int) -> list[Message]:
        head, bits, length_at = self.head, self._left_bits, _LENGTH.unpack_from
        parse = pb.SingleMessageMetadata.FromString
        at, end = self._at, len(payload)
        messages: list[Message] = []
        most_bytes = MOST_BYTES_AT_ONCE
        for index in range(self._next_index, stop):
            (size,) = length_at(payload, at)
            start = at + _LENGTH.size
            at = start + size
            single = payload[start:at]
            if size > LARGE_METADATA_BYTES:
                _check_field_count(single)
            try:
                parsed = parse(single)
            except DecodeError:
                single = _mended(single, _SINGLE)
                parsed = parse(single)
                most_bytes -= size * MENDED_BYTES
            start, at = at, at + parsed.payload_size
            if not start <= at <= end:
                raise _broken_batch(head)
            if not parsed.compacted_out and (bits is None or _is_left(bits, index)):
                # The bytes take a tenth of the parsed form's memory.
                messages.append(Message(head, single, payload[start:at], index))
            most_bytes -= size + parsed.payload_size
            if most_bytes < 0:
                stop = index + 1
                break
        self._at, self._next_index = at, stop
        return messages


def read_entry(command: pb.CommandMessage, frame: Frame, source: EntrySource) -> Entry:
    """Return the entry in a MESSAGE command.

    Its checksum is verified, its payload not decoded yet.

    Raises:
        BrokenEntryError: The entry is damaged, or encrypted.
    """
    body = frame.body()
    metadata, payload = _metadata_and_payload(body, _LENGTH.size + command_size_in(body))
    head = EntryHead(metadata, command, source.topic_name, source.schema)
    if metadata.encryption_keys:
        if not source.takes_encrypted:
            raise BrokenEntryError(
                pb.CommandAck.DecryptionError,
                "an entry is encrypted, and this client has no keys",
                max(1, metadata.num_messages_in_batch),
            )
    elif metadata.HasField("num_messages_in_batch"):
        head.batch_size = metadata.num_messages_in_batch
    ack_set = command.ack_set
    bits = struct.pack(f"<{len(ack_set)}q", *ack_set) if ack_set else None
    entry = Entry(head, payload, bits, source)
    if metadata.HasField("num_messages_in_batch") and not metadata.encryption_keys:
        most = min(entry.uncompressed_bytes, source.max_uncompressed_bytes) // LEAST_MESSAGE_BYTES
        if not 1 <= head.batch_size <= most:
            raise _broken_batch(head)
    return entry


def _metadata_and_payload(body: bytes, at: int) -> tuple[pb.MessageMetadata, bytes]:
    try:
        if body.startswith(_BROKER_METADATA_MAGIC, at):
            (size,) = _LENGTH.unpack_from(body, at + _MAGIC_BYTES)
            at += _HEADER_BYTES + size
        checked = body[at:]
        if checked.startswith(_CHECKSUM_MAGIC):
            (announced,) = _LENGTH.unpack_from(checked, _MAGIC_BYTES)
            checked = checked[_HEADER_BYTES:]
            if google_crc32c.value(checked) != announced:
                raise BrokenEntryError(
                    pb.CommandAck.ChecksumMismatch,
                    "an entry does not match its checksum",
                    _announced_messages(checked),
                )
        return _read_metadata(checked)
    except (struct.error, DecodeError):
        raise _broken_metadata() from None


def _read_metadata(checked: bytes) -> tuple[pb.MessageMetadata, bytes]:
    (size,) = _LENGTH.unpack_from(checked)
    end = _LENGTH.size + size
    if end > len(checked):
        raise DecodeError
    metadata = checked[_LENGTH.size : end]
    _check_field_count(metadata)
    try:
        return pb.MessageMetadata.FromString(metadata), checked[end:]
    except DecodeError:
        metadata = _mended(metadata, pb.MessageMetadata.DESCRIPTOR)
        return pb.MessageMetadata.FromString(metadata), checked[end:]


def _announced_messages(checked: bytes) -> int:
    """Return the number of messages in a damaged entry, as the broker counts them."""
    try:
        return max(1, _read_metadata(checked)[0].num_messages_in_batch)
    except (struct.error, DecodeError):
        return 1


def _mended(metadata: bytes, kind: Descriptor) -> bytes:
    """Return metadata with invalid UTF-8 in its texts replaced.

    Raises:
        DecodeError: Replacing would take too long.
    """
    if len(metadata) > MOST_MENDED_BYTES:
        raise DecodeError
    return mended(metadata, kind)


def _check_field_count(metadata: bytes) -> None:
    """Raise DecodeError if large metadata has too many fields.

    Raises:
        DecodeError: The metadata has too many fields, or is not protobuf.
    """
    if len(metadata) > LARGE_METADATA_BYTES:
        try:
            is_too_much = any(islice(fields(memoryview(metadata)), MOST_FIELDS, None))
        except RemoteProtocolError:
            is_too_much = True
        if is_too_much:
            raise DecodeError


def _is_left(bits: bytes, index: int) -> bool:
    """Return True if a message of a batch is unacknowledged."""
    place = index >> 3
    return place < len(bits) and bool(bits[place] >> (index & 7) & 1)


def _broken_metadata() -> BrokenEntryError:
    return BrokenEntryError(
        pb.CommandAck.BatchDeSerializeError, "an entry's metadata cannot be read"
    )


def _broken_batch(head: EntryHead) -> BrokenEntryError:
    return BrokenEntryError(
        pb.CommandAck.BatchDeSerializeError,
        f"a batch that says it has {head.batch_size} messages does not have them",
        max(1, head.batch_size),
    )
