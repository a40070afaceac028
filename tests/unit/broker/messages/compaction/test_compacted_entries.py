"""Compacted entries, found by their positions in the topic."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from broker.messages.compaction.compacted_entries import CompactedEntries
from broker.messages.entry import Entry
from broker.messages.errors import MessageStoreError
from broker.messages.metadata import MessageDigest
from broker.messages.position import EARLIEST, LATEST, Position
from broker.messages.stores.managed_ledger import MessageStore
from broker.messages.stores.memory import MemoryMessageStore
from broker.messages.stores.sqlite.database import ENTRY_BITS
from tests.support.stores.message_stores import KINDS, message_store, opened, sqlite_store

PLACES = [Position(4, 1), Position(4, 7), Position(9, 0), Position(9, 3)]
NAME = "compacted://t/n/x-1"


async def left(store: MessageStore | None = None) -> CompactedEntries:
    ledger = await (store or MemoryMessageStore(max_entries_per_ledger=3)).open_ledger(NAME)
    compacted = CompactedEntries(ledger, 1, Position(9, 5))
    for place in PLACES:
        compacted.add(Entry(*place, b"data of %d" % place.entry_id, MessageDigest(2, 3, 4)))
    await ledger.flushed()
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
async def test_a_read_starts_at_the_first_retained_entry_from_a_topic_position(
    first, expected
) -> None:
    compacted = await left()
    # A read ends with a ledger; the next read continues.
    found = await compacted.fetch(first, 100, 1_000_000)
    assert [entry.position for entry in found] == expected
    assert len(compacted) == 4


async def test_a_retained_entry_keeps_its_data_and_its_digest() -> None:
    compacted = await left()
    (entry,) = await compacted.fetch(Position(4, 7), 1, 1)
    assert entry.data == b"data of 7"
    assert (entry.message_count, entry.publish_time, entry.deliver_at) == (2, 3, 4)


def damage(path: Path, compacted: CompactedEntries, *numbers: int) -> None:
    """Alter some of the entries in the database."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for number in numbers:
            own = compacted.ledger.at(EARLIEST, number + 1)
            row_id = (own.ledger_id << ENTRY_BITS) + own.entry_id
            connection.execute("UPDATE entries SET data = X'00' WHERE row_id = ?", (row_id,))


@pytest.mark.parametrize("damaged", range(4))
async def test_a_damaged_entry_is_reported_and_hides_no_intact_entry(
    tmp_path: Path, damaged: int
) -> None:
    path = tmp_path / "messages.db"
    async with opened(sqlite_store(path, recent_bytes=0)) as store:
        compacted = await left(store)
        damage(path, compacted, damaged)
        for number, place in enumerate(PLACES):
            compacted._read_up_to = LATEST, 0  # Forces a search.
            if number == damaged:
                with pytest.raises(MessageStoreError, match="is damaged in the message database"):
                    await compacted.fetch(place, 100, 1_000_000)
                continue
            found = await compacted.fetch(place, 100, 1_000_000)
            assert found[0].position == place
            assert len(found) == (damaged if number < damaged else 4) - number


@pytest.mark.parametrize("damaged", [(0,), (1, 2), (2,), (3,), (0, 1, 3), range(4)])
@pytest.mark.parametrize("at_once", [1, 2, 9])
async def test_with_damage_skipped_every_intact_entry_is_read_exactly_once(
    tmp_path: Path, damaged: tuple[int, ...], at_once: int
) -> None:
    path = tmp_path / "messages.db"
    async with opened(sqlite_store(path, recent_bytes=0, skip_damaged=True)) as store:
        compacted = await left(store)
        damage(path, compacted, *damaged)
        for first in (EARLIEST, *PLACES):
            at, found = first, []
            while read := await compacted.fetch(at, at_once, 1_000_000):
                found += [entry.position for entry in read]
                at = Position(found[-1].ledger_id, found[-1].entry_id + 1)
            whole = [place for number, place in enumerate(PLACES) if number not in damaged]
            assert found == [place for place in whole if place >= first]
        last = await compacted.last_entry()
        assert [last.position] == whole[-1:] if last is not None else not whole


@pytest.mark.parametrize("kind", KINDS)
async def test_reading_deleted_entries_raises_an_error(tmp_path: Path, kind: str) -> None:
    async with opened(message_store(kind, tmp_path)) as store:
        compacted = await left(store)
        await store.delete_ledger(NAME)
        for first in (EARLIEST, *PLACES):
            with pytest.raises(MessageStoreError, match="compacted://t/n/x-1 is deleted"):
                await compacted.fetch(first, 100, 1_000_000)
        with pytest.raises(MessageStoreError, match="compacted://t/n/x-1 is deleted"):
            await compacted.last_entry()


async def test_reading_entries_deleted_during_the_search_raises_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(sqlite_store(tmp_path / "messages.db", recent_bytes=0)) as store:
        compacted = await left(store)
        read = store._parts.reads.range

        async def meanwhile(*args: int) -> object:
            await store.delete_ledger(NAME)
            return await read(*args)

        monkeypatch.setattr(store._parts.reads, "range", meanwhile)
        with pytest.raises(MessageStoreError, match="compacted://t/n/x-1 is deleted"):
            await compacted.fetch(PLACES[2], 100, 1_000_000)
