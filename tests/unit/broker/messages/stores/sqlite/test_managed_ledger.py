"""A topic's ledgers before their entries are stored."""

import sqlite3
from pathlib import Path

import pytest

from broker.messages.errors import MessageStoreError
from broker.messages.position import Position
from tests.support.stores.held_connection import held_writers
from tests.support.stores.message_stores import (
    OTHER_TOPIC,
    TOPIC,
    Noting,
    digest,
    filled,
    opened,
    sqlite_store,
)


async def test_unstored_entries_are_discarded_and_their_topic_gets_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = held_writers(monkeypatch)
    async with opened(sqlite_store(tmp_path / "messages.db")) as store:
        ledger = await store.open_ledger(TOPIC)
        other = await store.open_ledger(OTHER_TOPIC)
        ledger.listener, other.listener = Noting(), Noting()
        positions = await filled(ledger, 4)
        made[0].errors.append(sqlite3.OperationalError("disk I/O error"))
        for _ in range(3):
            ledger.append(b"lost", digest())
        with pytest.raises(MessageStoreError, match="disk I/O error"):
            await ledger.flushed()
        assert "disk I/O error" in str(ledger.listener.error)
        assert other.listener.error is None
        assert ledger.listener.last == ledger.last_confirmed == positions[-1]
        assert [info.entries for info in ledger.ledgers] == [4, 0]
        assert (store.room.taken.entries, store.room.taken.data_bytes) == (4, 28)
        for one in (ledger, other):
            with pytest.raises(MessageStoreError, match="disk I/O error"):
                one.append(b"too late", digest())
        found = await ledger.fetch(Position(positions[0].ledger_id, -1), 9, 99)
        assert [entry.data for entry in found] == [b"entry %d" % number for number in range(4)]


async def test_ledgers_without_stored_entries_are_removed_with_their_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = held_writers(monkeypatch)
    async with opened(sqlite_store(tmp_path / "messages.db")) as store:
        ledger = await store.open_ledger(TOPIC)
        positions = await filled(ledger, 7)
        made[0].errors.append(sqlite3.OperationalError("disk I/O error"))
        for _ in range(12):
            ledger.append(b"lost", digest())
        with pytest.raises(MessageStoreError, match="disk I/O error"):
            await ledger.flushed()
        assert [info.entries for info in ledger.ledgers] == [5, 2, 0]
        assert ledger.size_bytes == store.room.taken.data_bytes == 7 * len(b"entry 0")
        assert ledger.following(positions[-1]) == Position(ledger.ledgers[-1].ledger_id, 0)
        assert ledger.count(positions[0], ledger.last_confirmed) == 6
        store.close_ledger(TOPIC)
        again = await store.open_ledger(TOPIC)
        assert again.size_bytes == 7 * len(b"entry 0")
        assert [info.entries for info in again.ledgers] == [5, 2, 0]


async def test_an_entry_in_flight_has_a_position_but_is_not_readable(tmp_path, monkeypatch) -> None:
    made = held_writers(monkeypatch)
    async with opened(sqlite_store(tmp_path / "messages.db")) as store:
        ledger = await store.open_ledger(TOPIC)
        (first,) = await filled(ledger, 1)
        made[0].hold()
        second = ledger.append(b"second", digest())
        assert ledger.following(first) == second > ledger.last_confirmed
        assert await ledger.fetch(second, 9, 99) == []
        assert (await ledger.entry(second), ledger.digest(second)) == (None, None)
        made[0].release()
        await ledger.flushed()
        assert (await ledger.entry(second)).data == b"second"


@pytest.mark.parametrize("how", ["trim", "truncate"])
async def test_ledgers_that_cannot_be_dropped_after_a_write_error_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    made = held_writers(monkeypatch)
    async with opened(sqlite_store(tmp_path / "messages.db")) as store:
        ledger, other = await store.open_ledger(TOPIC), await store.open_ledger(OTHER_TOPIC)
        await filled(ledger, 12)
        made[0].errors.append(sqlite3.OperationalError("disk I/O error"))
        other.append(b"lost", digest())
        with pytest.raises(MessageStoreError, match="disk I/O error"):
            await other.flushed()
        with pytest.raises(MessageStoreError, match="disk I/O error"):
            ledger.trim(ledger.last_confirmed, 0, 0) if how == "trim" else ledger.truncate()
        assert [info.entries for info in ledger.ledgers] == [5, 5, 2]
        assert store.room.taken.entries == 12
