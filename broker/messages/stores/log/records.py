"""Records of the log: a header with length and CRC32C, then a body.

Records of entries mean the same wherever they stand, as each names its ledger and its number, and
can be copied as they are. Of the states of an item the last one counts.
"""

from __future__ import annotations

import struct
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

import google_crc32c

from broker.messages.metadata import MessageDigest

if TYPE_CHECKING:
    from collections.abc import Iterator

FORMAT_VERSION = 1
MAGIC = b"FgL\x01"

_HEADER = Struct("<4sII")
_ENTRY = Struct("<BQQiQq")
_ITEM = Struct("<BQBBH")
_SYNCED = Struct("<BQQ")
_START = Struct("<BIQ")
_START_TYPE, _ENTRY_TYPE, _ITEM_TYPE, _SYNCED_TYPE = 1, 2, 3, 4

OFFSET_BITS = 32
OFFSET_MASK = (1 << OFFSET_BITS) - 1
"""A place in the log is one number: the segment's, then the offset in so many bits."""

HEADER_BYTES = _HEADER.size
ENTRY_DATA_OFFSET = _HEADER.size + _ENTRY.size
"""The place in a record at which the entry's own bytes begin."""


class ItemKey(NamedTuple):
    """The name of a small state that the log keeps beside entries.

    Attributes:
        topic_id: Whose it is; 0 is the store's own.
        kind: One of the constants below.
        name: Of the cursor, or the property.
    """

    topic_id: int
    kind: int
    name: str

    @property
    def of_topic(self) -> ItemKey:
        """The item that is the topic itself."""
        return ItemKey(self.topic_id, TOPIC, "")


TOPIC, CURSOR, PROPERTY, IDS = 1, 2, 3, 4


class EntryRecord(NamedTuple):
    """An entry as it is found in the log."""

    ledger_id: int
    entry_id: int
    digest: MessageDigest
    size: int


class ItemRecord(NamedTuple):
    """A state of an item; a value of None deletes it."""

    key: ItemKey
    value: bytes | None


class SyncedRecord(NamedTuple):
    """Up to here the disk has a segment, for certain."""

    segment: int
    offset: int


class StartRecord(NamedTuple):
    """The first record of a segment."""

    format_version: int
    segment: int


class DamagedBytes(NamedTuple):
    """Bytes that are no whole record, from here to there."""

    end: int


Record = EntryRecord | ItemRecord | SyncedRecord | StartRecord


def entry_record(ledger_id: int, entry_id: int, data: bytes, digest: MessageDigest) -> bytes:
    """Return what stands before an entry's bytes in its record."""
    body = _ENTRY.pack(_ENTRY_TYPE, ledger_id, entry_id, *digest)
    checksum = google_crc32c.extend(google_crc32c.value(body), data)
    return _HEADER.pack(MAGIC, len(body) + len(data), checksum) + body


def item_record(key: ItemKey, value: bytes | None) -> bytes:
    """Return the record of an item's state."""
    name = key.name.encode()
    present = value is not None
    body = _ITEM.pack(_ITEM_TYPE, key.topic_id, key.kind, present, len(name))
    return _framed(body + name + (value or b""))


def synced_record(segment: int, offset: int) -> bytes:
    """Return the record that tells up to where the disk has a segment."""
    return _framed(_SYNCED.pack(_SYNCED_TYPE, segment, offset))


def start_record(segment: int) -> bytes:
    """Return the first record of a segment."""
    return _framed(_START.pack(_START_TYPE, FORMAT_VERSION, segment))


def _framed(body: bytes) -> bytes:
    return _HEADER.pack(MAGIC, len(body), google_crc32c.value(body)) + body


def body_at(data: bytes, offset: int) -> bytes | None:
    """Return the body of the whole record at an offset; None if there is none."""
    if offset + HEADER_BYTES > len(data):
        return None
    magic, size, checksum = _HEADER.unpack_from(data, offset)
    start = offset + HEADER_BYTES
    # Nothing at all has the checksum 0: zeros behind a magic number are no record.
    if magic != MAGIC or not size or start + size > len(data):
        return None
    body = data[start : start + size]
    return body if google_crc32c.value(body) == checksum else None


def scan(data: bytes) -> Iterator[tuple[int, int, Record | DamagedBytes]]:
    """Yield offset, size and content of all records of a segment, and what lies between them."""
    offset = 0
    while offset < len(data):
        body = body_at(data, offset)
        if body is None:
            end = _next_record(data, offset + 1)
            yield offset, end - offset, DamagedBytes(end)
            offset = end
            continue
        size = HEADER_BYTES + len(body)
        yield offset, size, _parse(body) or DamagedBytes(offset + size)
        offset += size


def _next_record(data: bytes, offset: int) -> int:
    while (offset := data.find(MAGIC, offset)) >= 0:
        if body_at(data, offset) is not None:
            return offset
        offset += 1
    return len(data)


def _parse(body: bytes) -> Record | None:
    """Return what a body says; None for one that nobody wrote, whatever its checksum."""
    try:
        return _parsed(body)
    except (struct.error, ValueError):
        return None


def _parsed(body: bytes) -> Record:
    kind = body[0]
    if kind == _ENTRY_TYPE:
        _, ledger_id, entry_id, *digest = _ENTRY.unpack_from(body)
        return EntryRecord(ledger_id, entry_id, MessageDigest(*digest), len(body) - _ENTRY.size)
    if kind == _ITEM_TYPE:
        _, topic_id, item_kind, present, length = _ITEM.unpack_from(body)
        end = _ITEM.size + length
        key = ItemKey(topic_id, item_kind, body[_ITEM.size : end].decode())
        if bool(topic_id) == (item_kind == IDS) or (item_kind == TOPIC and key.name):
            raise ValueError("an item that is nobody's")
        return ItemRecord(key, body[end:] if present else None)
    if kind == _SYNCED_TYPE:
        return SyncedRecord(*_SYNCED.unpack(body)[1:])
    return StartRecord(*_START.unpack(body)[1:])
