"""Records of the log, whole and damaged."""

from __future__ import annotations

import pytest

from broker.messages.metadata import MessageDigest
from broker.messages.stores.log import records
from broker.messages.stores.log.records import (
    CURSOR,
    MAGIC,
    DamagedBytes,
    EntryRecord,
    ItemKey,
    ItemRecord,
    StartRecord,
    SyncedRecord,
    entry_record,
    item_record,
    scan,
    start_record,
    synced_record,
)

DIGEST = MessageDigest(3, 2**64 - 1, -5)
KEY = ItemKey(7, CURSOR, "süß")


def test_records_are_read_as_they_were_written() -> None:
    # Given
    data = b"".join(
        (
            start_record(4),
            entry_record(1, 2, b"data", DIGEST),
            b"data",
            item_record(KEY, b"value"),
            item_record(KEY, None),
            synced_record(4, 100),
        )
    )
    # When
    records = [record for _, _, record in scan(data)]
    # Then
    assert records == [
        StartRecord(1, 4),
        EntryRecord(1, 2, DIGEST, 4),
        ItemRecord(KEY, b"value"),
        ItemRecord(KEY, None),
        SyncedRecord(4, 100),
    ]


def test_what_lies_between_whole_records_is_damaged() -> None:
    # Given
    first, second = item_record(KEY, b"x" * 50), item_record(KEY, b"y")
    damaged = bytearray(first)
    damaged[-3] ^= 1
    # When
    found = list(scan(second + bytes(damaged) + MAGIC + second))
    # Then
    start, end = len(second), len(second) + len(first) + len(MAGIC)
    assert [(offset, size) for offset, size, _ in found] == [
        (0, start),
        (start, end - start),
        (end, len(second)),
    ]
    assert found[1][2] == DamagedBytes(end)


def test_zeros_behind_a_magic_number_are_no_record() -> None:
    # When
    found = list(scan(MAGIC + bytes(100)))
    # Then
    assert [record for _, _, record in found] == [DamagedBytes(104)]


@pytest.mark.parametrize(
    "body",
    [
        b"\x01",
        b"\x02short",
        b"\x07" + bytes(20),
        records.item_record(ItemKey(1, records.CURSOR, "s"), b"x")[records.HEADER_BYTES :][:11],
        records.item_record(ItemKey(0, records.TOPIC, ""), b"x")[records.HEADER_BYTES :],
        records.item_record(ItemKey(1, records.TOPIC, "name"), None)[records.HEADER_BYTES :],
        records.item_record(ItemKey(1, records.CURSOR, "s"), None)[records.HEADER_BYTES :][:-1]
        + b"\xff",
    ],
    ids=["empty", "short", "unknown", "cut", "no topic's", "a topic with a name", "no text"],
)
def test_a_record_that_nobody_wrote_is_damage_although_its_checksum_is_right(body: bytes) -> None:
    # Given
    framed = records._framed(body)
    # When, Then
    assert list(records.scan(framed)) == [(0, len(framed), records.DamagedBytes(len(framed)))]
