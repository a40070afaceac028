"""Reads from a damaged database."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from broker.messages.errors import MessageStoreError
from broker.messages.position import EARLIEST, Position
from broker.messages.stores.managed_ledger import ManagedLedger
from broker.messages.stores.sqlite.database import ENTRY_BITS, DatabaseFile
from broker.messages.stores.sqlite.reads import Read
from tests.support.stores.message_stores import (
    OTHER_TOPIC,
    TOPIC,
    digest,
    filled,
    opened,
    sqlite_store,
)

COUNT = 12
"""Entries of the topic: two full ledgers, and two entries of a third."""


def change(path: Path, statement: str, *values: object) -> None:
    """Change a database's rows while the broker is running."""
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(statement, values).rowcount


def row_id(position: Position) -> int:
    """The row of an entry."""
    return (position.ledger_id << ENTRY_BITS) + position.entry_id


@asynccontextmanager
async def stored(
    folder: Path, *, skip_damaged: bool = False
) -> AsyncIterator[tuple[ManagedLedger, list[Position], Path]]:
    """Return a topic with no entry in memory, the entries' positions, and the database."""
    path = folder / "messages.db"
    store = sqlite_store(path, skip_damaged=skip_damaged, recent_bytes=0)
    async with opened(store):
        ledger = await store.open_ledger(TOPIC)
        yield ledger, await filled(ledger, COUNT), path


async def all_of(ledger: ManagedLedger) -> list[int]:
    """Read all entries, compare them with the written entries, return their numbers."""
    numbers: list[int] = []
    first = EARLIEST
    while entries := await ledger.fetch(first, 3, 1_000):
        for entry in entries:
            number = int(entry.data.removeprefix(b"entry "))
            assert (entry.publish_time, entry.message_count) == (1_000 + 10 * number, 1)
            numbers.append(number)
        last = entries[-1].position
        first = Position(last.ledger_id, last.entry_id + 1)
    return numbers


ALTERED = {
    "its data": "UPDATE entries SET data = X'656E747279203939' WHERE row_id = ?",
    "its data cut short": "UPDATE entries SET data = X'656E' WHERE row_id = ?",
    "its data another type": "UPDATE entries SET data = 5 WHERE row_id = ?",
    "its head": "UPDATE entries SET head = zeroblob(24) WHERE row_id = ?",
    "its head cut short": "UPDATE entries SET head = X'00' WHERE row_id = ?",
    "its head another type": "UPDATE entries SET head = 'x' WHERE row_id = ?",
    "its row": "DELETE FROM entries WHERE row_id = ?",
}


@pytest.mark.parametrize("altered", ALTERED)
@pytest.mark.parametrize("number", [0, 3, 4, COUNT - 1])
async def test_a_read_stops_before_an_altered_row_and_reports_the_entry(
    tmp_path: Path, altered: str, number: int
) -> None:
    async with stored(tmp_path) as (ledger, positions, path):
        change(path, ALTERED[altered], row_id(positions[number]))
        begun = await ledger.fetch(positions[0], 99, 1_000) if number else []
        assert [entry.position for entry in begun] == positions[: min(number, 5)]
        named = "{}:{}".format(*positions[number])
        with pytest.raises(MessageStoreError) as refused:
            await all_of(ledger)
    gone = "missing" if "DELETE" in ALTERED[altered] and number in (4, COUNT - 1) else "damaged"
    assert str(refused.value) == (
        f"entry {named} is {gone} in the message database; bring it back from a copy, without "
        "the -wal and -shm files beside it, or start the broker "
        "with floodgateMessageStoreDropDamaged=true, which leaves damaged entries out"
    )


@pytest.mark.parametrize("altered", ALTERED)
@pytest.mark.parametrize("numbers", [(0,), (3,), (4,), (2, 3, 4), (0, 1, 2, 3, 4), (9, 10, 11)])
async def test_with_damage_skipped_every_intact_entry_is_read(
    tmp_path: Path, altered: str, numbers: tuple[int, ...]
) -> None:
    async with stored(tmp_path, skip_damaged=True) as (ledger, positions, path):
        for number in numbers:
            change(path, ALTERED[altered], row_id(positions[number]))
        assert await all_of(ledger) == [one for one in range(COUNT) if one not in numbers]


async def test_entries_with_swapped_rows_are_damaged(tmp_path: Path) -> None:
    async with stored(tmp_path, skip_damaged=True) as (ledger, positions, path):
        one, other = row_id(positions[1]), row_id(positions[2])
        for old, new in ((one, 1), (other, one), (1, other)):
            change(path, "UPDATE entries SET row_id = ? WHERE row_id = ?", new, old)
        assert await all_of(ledger) == [0, *range(3, COUNT)]


async def test_a_topic_counts_its_fetched_entries(tmp_path: Path) -> None:
    async with stored(tmp_path) as (ledger, positions, _):
        assert ledger.fetched_entries == 0
        await all_of(ledger)
        assert ledger.fetched_entries == COUNT
        await ledger.fetch_each(positions[:2])
        assert ledger.fetched_entries == COUNT + 2


async def test_fetching_single_entries_returns_only_intact_entries(tmp_path: Path) -> None:
    async with stored(tmp_path) as (ledger, positions, path):
        change(path, ALTERED["its data"], row_id(positions[1]))
        change(path, ALTERED["its row"], row_id(positions[2]))
        found = await ledger.fetch_each([positions[9], *positions[:4]])
        assert [entry.data for entry in found] == [b"entry 9", b"entry 0", b"entry 3"]
        assert await ledger.entry(positions[1]) is None


async def test_the_digest_of_a_damaged_or_missing_entry_is_none(tmp_path) -> None:
    async with stored(tmp_path) as (ledger, positions, path):
        assert ledger.digest(positions[3]) == digest(publish_time=1_030)
        change(path, ALTERED["its head cut short"], row_id(positions[3]))
        assert ledger.digest(positions[3]) is None
        change(path, ALTERED["its row"], row_id(positions[3]))
        assert ledger.digest(positions[3]) is None


async def test_a_time_search_among_damaged_heads_fails(tmp_path: Path) -> None:
    async with stored(tmp_path) as (ledger, _, path):
        change(path, "UPDATE entries SET head = X'00'")
        with pytest.raises(MessageStoreError, match="is damaged in the message database"):
            await ledger.published_at(1_030)


async def test_a_time_search_fails_at_a_missing_entry(tmp_path: Path) -> None:
    async with stored(tmp_path) as (ledger, positions, path):
        middle = positions[len(positions) // 2]
        change(path, "DELETE FROM entries WHERE row_id = ?", row_id(middle))
        with pytest.raises(MessageStoreError, match=f"entry {middle} is missing in the message d"):
            await ledger.published_at(0)


@pytest.mark.parametrize("damage", ["DELETE FROM entries", "UPDATE entries SET head = X'00'"])
async def test_with_damage_skipped_a_time_search_uses_the_next_intact_entry(
    tmp_path: Path, damage: str
) -> None:
    async with stored(tmp_path, skip_damaged=True) as (ledger, positions, path):
        times = [1_000 + 10 * number for number in range(COUNT)]
        for place, damaged in enumerate(positions):
            change(path, f"{damage} WHERE row_id = ?", row_id(damaged))
            found = [await ledger.published_at(time) for time in times[place + 2 :]]
            assert found == positions[place + 2 :]
            assert (await ledger.published_at(0)) <= positions[0]


def damage_page_of(path: Path, position: Position) -> None:
    """Overwrite the page of an entry that has left the write-ahead log."""
    content = bytearray(path.read_bytes())
    begin = content.index(b"entry %d" % position.entry_id)
    page = begin - begin % PAGE
    content[page : page + 8] = b"\xff" * 8
    path.write_bytes(content)


PAGE = 16 * 1024


async def with_damaged_page(folder: Path) -> Path:
    """Return a database with a page for each entry, the third page destroyed."""
    path = folder / "messages.db"
    async with opened(sqlite_store(path)) as store:
        ledger = await store.open_ledger(TOPIC)
        for number in range(5):
            ledger.append(b"entry %d" % number + bytes(PAGE // 2), digest())
        await ledger.flushed()
    damage_page_of(path, Position(0, 2))
    return path


async def test_entries_before_a_damaged_page_are_read(tmp_path: Path) -> None:
    path = await with_damaged_page(tmp_path)
    async with opened(sqlite_store(path, recent_bytes=0)) as store:
        ledger = await store.open_ledger(TOPIC)
        (first, second) = await ledger.fetch(EARLIEST, 99, 1 << 20)
        assert (first.data[:7], second.data[:7]) == (b"entry 0", b"entry 1")
        with pytest.raises(MessageStoreError, match=r"entry \d+:2 is damaged in the message"):
            await ledger.fetch(ledger.following(second.position), 99, 1 << 20)


async def test_with_damage_skipped_entries_behind_a_damaged_page_are_read(tmp_path) -> None:
    path = await with_damaged_page(tmp_path)
    async with opened(sqlite_store(path, skip_damaged=True, recent_bytes=0)) as store:
        ledger = await store.open_ledger(TOPIC)
        found = await ledger.fetch(EARLIEST, 99, 1 << 20)
        assert [entry.data[:7] for entry in found] == [b"entry %d" % one for one in (0, 1, 3, 4)]
        positions = [Position(found[0].ledger_id, number) for number in range(5)]
        each = await ledger.fetch_each(positions)
        assert [entry.position for entry in each] == [entry.position for entry in found]
        assert ledger.digest(positions[2]) is None


async def test_entries_dropped_during_a_read_are_skipped(tmp_path, monkeypatch) -> None:
    async with stored(tmp_path) as (ledger, positions, _):
        reads = ledger._parts.reads

        async def too_late(*_: int) -> Read:
            monkeypatch.undo()
            ledger.truncate()
            return Read([], "entry 1:0 is missing")

        monkeypatch.setattr(reads, "range", too_late)
        found = await ledger.fetch(positions[0], 9, 99)
        assert [entry.position for entry in found] == positions[10:]


@pytest.mark.parametrize(
    ("name", "of", "to", "whole"),
    [
        (TOPIC, b"other 0", b"entry 0", [b"entry 1", b"entry 2"]),
        (OTHER_TOPIC, b"entry 1", b"other 1", [b"other 0", b"other 2"]),
    ],
    ids=["of a later topic", "of an earlier topic"],
)
async def test_a_misplaced_page_hides_no_intact_entry_and_adds_no_foreign_entry(
    tmp_path: Path, name: str, of: bytes, to: bytes, whole: list[bytes]
) -> None:
    path = tmp_path / "messages.db"
    async with opened(sqlite_store(path)) as store:
        for topic, what in ((TOPIC, b"entry"), (OTHER_TOPIC, b"other")):
            ledger = await store.open_ledger(topic)
            for number in range(3):
                ledger.append(what + b" %d" % number + bytes(PAGE // 2), digest())
            await ledger.flushed()
    content = bytearray(path.read_bytes())
    # Pages split earlier contain stale bytes of the entry, too.
    source, place = (content.rindex(one) // PAGE * PAGE for one in (of, to))
    content[place : place + PAGE] = content[source : source + PAGE]
    path.write_bytes(content)
    async with opened(sqlite_store(path, skip_damaged=True, recent_bytes=0)) as store:
        ledger = await store.open_ledger(name)
        found = await ledger.fetch(EARLIEST, 99, 1 << 20)
        assert [entry.data[:7] for entry in found] == whole


class FailingConnection:
    """A connection whose reads fail, as on a lost disk."""

    def execute(self, statement: str, values: object = ()) -> None:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR_READ
        raise error

    def close(self) -> None:
        """No-op."""


@pytest.mark.parametrize("skip_damaged", [False, True])
async def test_a_read_error_is_not_mistaken_for_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, skip_damaged: bool
) -> None:
    async with stored(tmp_path, skip_damaged=skip_damaged) as (ledger, positions, _):
        monkeypatch.setattr(DatabaseFile, "reader", lambda _: FailingConnection())
        for reading in (
            ledger.fetch(EARLIEST, 9, 99),
            ledger.fetch_each(positions),
            ledger.published_at(1_000),
        ):
            with pytest.raises(MessageStoreError, match=r"messages.db is not read: disk I/O error"):
                await reading
        assert ledger.digest(positions[0]) is None


async def test_many_simultaneous_reads_succeed_and_a_read_after_closing_is_refused(
    tmp_path: Path,
) -> None:
    async with stored(tmp_path) as (ledger, positions, _):
        many = await asyncio.gather(*(ledger.entry(at) for at in positions * 3))
        assert [entry.position for entry in many] == positions * 3
    with pytest.raises(MessageStoreError, match="the message store is closed"):
        await ledger.entry(positions[0])
