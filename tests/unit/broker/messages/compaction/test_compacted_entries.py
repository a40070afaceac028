"""Entries that are left of a topic, found by their positions in it."""

from __future__ import annotations

import pytest

from broker.messages.compaction.compacted_entries import CompactedEntries
from broker.messages.entry import Entry
from broker.messages.metadata import MessageDigest
from broker.messages.position import EARLIEST, LATEST, Position
from broker.messages.stores.memory import MemoryMessageStore

PLACES = [Position(4, 1), Position(4, 7), Position(9, 0), Position(9, 3)]


async def left() -> CompactedEntries:
    ledger = await MemoryMessageStore(max_entries_per_ledger=3).open_ledger("compacted://t/n/x-1")
    compacted = CompactedEntries(ledger, 1, Position(9, 5))
    for place in PLACES:
        compacted.add(Entry(*place, b"data of %d" % place.entry_id, MessageDigest(2, 3, 4)))
    return compacted


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        (EARLIEST, PLACES[:3]),
        (Position(4, 1), PLACES[:3]),
        (Position(4, 2), PLACES[1:3]),
        (Position(5, 0), PLACES[2:3]),
        (Position(9, 1), PLACES[3:]),
        (Position(9, 4), []),
        (LATEST, []),
    ],
)
async def test_entries_are_read_from_a_position_of_their_topic(
    first: Position, expected: list[Position]
) -> None:
    # Given
    compacted = await left()
    # When: a read ends with a ledger, and the next goes on.
    found = await compacted.fetch(first, 100, 1_000_000)
    # Then
    assert [entry.position for entry in found] == expected
    assert len(compacted) == 4


async def test_an_entry_is_as_it_was_in_its_topic() -> None:
    # Given
    compacted = await left()
    # When
    (entry,) = await compacted.fetch(Position(4, 7), 1, 1)
    # Then
    assert entry.data == b"data of 7"
    assert (entry.message_count, entry.publish_time, entry.deliver_at) == (2, 3, 4)
