"""A database from creation to end: catalog, damage, deletions."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from broker.messages.errors import MessageStoreError
from broker.messages.position import EARLIEST, Position
from broker.messages.stores.managed_ledger import CursorState
from broker.messages.stores.sqlite.database import ENTRY_BITS, FROM_A_COPY, DatabaseFile
from broker.messages.stores.sqlite.store import IDS_AT_ONCE, MOST_IDS
from broker.messages.stores.sqlite.writer import RETRY_SECONDS
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle, started
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

DAMAGED = (
    r"the message database .*messages\.db is damaged: {} is not as it was written; bring it back "
    r"from a copy, without the -wal and -shm files beside it, or start the broker with "
    r"floodgateMessageStoreDropDamaged=true, which skips damaged data"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "messages.db"


async def make(path: Path) -> None:
    """Make a database of two topics with cursors and properties."""
    async with opened(sqlite_store(path)) as store:
        for name in (TOPIC, OTHER_TOPIC):
            ledger = await store.open_ledger(name)
            ledger.save_cursor("s", CursorState(EARLIEST))
            ledger.set_property("k", "v")
            await filled(ledger, 7)


def change(path: Path, statement: str) -> None:
    """Change the rows of a database not opened by a broker."""
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(statement).rowcount


def entries_in(path: Path) -> list[int]:
    """The ledgers of all entries in a database."""
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("SELECT row_id FROM entries ORDER BY row_id").fetchall()
    return [row_id >> ENTRY_BITS for (row_id,) in found]


# -- a start ----------------------------------------------------------------------------------


async def test_ids_are_never_reused_after_a_restart_or_a_lost_counter(path: Path) -> None:
    async with opened(sqlite_store(path)) as store:
        given = [store.next_id() for _ in range(IDS_AT_ONCE + 5)]
        await (await store.open_ledger(TOPIC)).flushed()
    change(path, "DELETE FROM store WHERE key = 'ids'")
    async with opened(sqlite_store(path)) as store:
        assert store.next_id() > store._topics[TOPIC].topic_id > given[-1]
    async with opened(sqlite_store(path)) as store:
        assert store.next_id() > given[-1]


async def test_a_database_identity_is_stable_and_unique(path: Path, tmp_path: Path) -> None:
    names = []
    for one in (path, path, tmp_path / "other.db"):
        async with opened(sqlite_store(one)) as store:
            names.append(store.identity)
    assert names[0] == names[1] != names[2]


async def test_a_failed_start_leaves_the_database_closed(path: Path) -> None:
    await make(path)
    change(path, "UPDATE topics SET name = 'x'")
    with pytest.raises(MessageStoreError):
        await sqlite_store(path).open()
    async with opened(sqlite_store(path, skip_damaged=True)) as store:
        assert store.names() == []


async def test_the_entries_of_a_deleted_topic_leave_memory(path: Path) -> None:
    async with opened(sqlite_store(path)) as store:
        await filled(await store.open_ledger(TOPIC), 7)
        assert store.figures().recent_bytes > 0
        await store.delete_ledger(TOPIC)
        assert store.figures().recent_bytes == 0


# -- damage -----------------------------------------------------------------------------------

CATALOG = {
    "UPDATE topics SET name = 'persistent://t/n/x' WHERE topic_id = 1": "a topic",
    "UPDATE topics SET topic_id = 99 WHERE topic_id = 1": "a topic",
    "UPDATE topics SET name = 5": "a topic",
    "UPDATE ledgers SET entries = 99 WHERE topic_id = 1": "a ledger",
    "UPDATE ledgers SET size_bytes = 'x'": "a ledger",
    "UPDATE ledgers SET checksum = 0": "a ledger",
    "DELETE FROM topics WHERE topic_id = 1": "a topic",
    "UPDATE store SET value = 'x' WHERE key = 'ids'": "an entry of its store",
    "UPDATE store SET value = '5' WHERE key = 'ids'": "an entry of its store",
    "UPDATE store SET value = 'x' WHERE key = 'identity'": "an entry of its store",
}


@pytest.mark.parametrize("statement", CATALOG)
async def test_an_altered_catalog_is_refused_and_with_damage_skipped_the_rest_is_served(
    path: Path, statement: str
) -> None:
    await make(path)
    change(path, statement)
    with pytest.raises(MessageStoreError, match=DAMAGED.format(CATALOG[statement])):
        await sqlite_store(path).open()
    async with opened(sqlite_store(path, skip_damaged=True)) as store:
        assert store.next_id() > 4
        assert len(store.identity) == 32
        for name in store.names():
            ledger = await store.open_ledger(name)
            for entry in await ledger.fetch(EARLIEST, 99, 999):
                assert entry.data.startswith(b"entry ")
    async with opened(sqlite_store(path, skip_damaged=True)) as again:
        assert again.identity == store.identity


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("UPDATE cursors SET state = X'00' WHERE topic_id = 1", "a subscription of"),
        ("UPDATE cursors SET name = 't' WHERE topic_id = 1", "a subscription of"),
        ("UPDATE properties SET value = 'w' WHERE topic_id = 1", "a property of"),
    ],
)
async def test_only_the_topic_with_altered_states_is_refused(
    path: Path, statement: str, what: str
) -> None:
    await make(path)
    change(path, statement)
    async with opened(sqlite_store(path)) as store:
        with pytest.raises(MessageStoreError, match=DAMAGED.format(f"{what} {TOPIC}")):
            await store.open_ledger(TOPIC)
        other = await store.open_ledger(OTHER_TOPIC)
        assert (list(other.cursors), dict(other.properties)) == (["s"], {"k": "v"})
    async with opened(sqlite_store(path, skip_damaged=True)) as store:
        ledger = await store.open_ledger(TOPIC)
        assert len(ledger.cursors) + len(ledger.properties) == 1


async def test_invalid_utf8_in_the_catalog_is_reported_in_a_sentence(path: Path) -> None:
    await make(path)
    change(path, "UPDATE topics SET name = CAST(X'FF' AS TEXT)")
    with pytest.raises(MessageStoreError, match="cannot be opened: Could not decode to UTF-8"):
        await sqlite_store(path).open()


async def test_an_undecodable_schema_is_reported_in_a_sentence(path: Path) -> None:
    await make(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA writable_schema=ON")
        connection.execute("UPDATE sqlite_schema SET sql = CAST(X'6E6F0AFF' AS TEXT)")
    with pytest.raises(MessageStoreError, match=r"cannot be opened: [^\n]*; bring it back from a"):
        await sqlite_store(path).open()


@pytest.fixture(params=[b"something else", b"\xff" * 5_000])
def no_database(request: pytest.FixtureRequest, path: Path) -> Iterator[None]:
    """Create a file that is no database; check that opening leaves the file unchanged."""
    path.write_bytes(request.param)
    yield
    assert path.read_bytes() == request.param


@pytest.mark.usefixtures("no_database")
async def test_a_file_that_is_no_database_is_refused_and_kept_unchanged(path: Path) -> None:
    ends = f"is not a database; {FROM_A_COPY}, or move it away to begin with an empty one"
    with pytest.raises(MessageStoreError, match=f"cannot be opened: file {ends}"):
        await sqlite_store(path).open()


async def test_a_start_without_disk_space_is_refused_with_advice_to_free_room(
    path: Path, monkeypatch
) -> None:
    def no_room(file: DatabaseFile, max_pages: int = 0) -> sqlite3.Connection:
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    monkeypatch.setattr(DatabaseFile, "writer", no_room)
    told = "no room for the message database .*; free some room on its disk, then start the broker"
    with pytest.raises(MessageStoreError, match=told):
        await sqlite_store(path).open()


async def test_a_read_only_database_file_is_refused_at_the_start(path, monkeypatch) -> None:
    await make(path)
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(MessageStoreError, match=r"messages\.db may not be written"):
        await sqlite_store(path).open()


async def test_a_database_without_free_ledger_numbers_opens_no_new_topic(path: Path) -> None:
    async with opened(sqlite_store(path)) as store:
        await store.open_ledger(TOPIC)
        store._next_id = store._reserved = MOST_IDS
        with pytest.raises(MessageStoreError, match="has no numbers left for ledgers; move it aw"):
            await store.open_ledger(OTHER_TOPIC)


# -- closing and reopening topics -------------------------------------------------------------


async def test_simultaneous_opens_of_a_topic_share_a_ledger_with_its_newest_cursors(
    path: Path,
) -> None:
    await make(path)
    async with opened(sqlite_store(path)) as store:
        reads, may_go_on = store._parts.reads, asyncio.Event()
        in_thread = reads.in_thread

        async def slow(read: Callable[[sqlite3.Connection], object]) -> object:
            found = await in_thread(read)
            await may_go_on.wait()
            return found

        reads.in_thread = slow
        late = await started(store.open_ledger(TOPIC))
        reads.in_thread = in_thread
        ledger = await store.open_ledger(TOPIC)
        ledger.save_cursor("new", CursorState(EARLIEST))
        may_go_on.set()
        assert await late is ledger
        assert list(ledger.cursors) == ["s", "new"]


async def test_a_topic_reopened_while_the_disk_is_full_has_its_unwritten_states(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = held_writers(monkeypatch)
    await make(path)
    async with opened(sqlite_store(path)) as store:
        ledger, other = await store.open_ledger(TOPIC), await store.open_ledger(OTHER_TOPIC)
        last = ledger.last_confirmed
        await ledger.flushed()
        made[-1].execute("PRAGMA max_page_count=1")
        other.append(bytes(1 << 16), digest())
        ledger.save_cursor("s", CursorState(last))
        ledger.save_cursor("new", CursorState(last))
        ledger.set_property("k", None)
        with pytest.raises(MessageStoreError, match="there is no room"):
            await ledger.flushed()
        store.close_ledger(TOPIC)
        again = await store.open_ledger(TOPIC)
        assert dict(again.cursors) == {"s": CursorState(last), "new": CursorState(last)}
        assert (dict(again.properties), again.last_confirmed) == ({}, last)


async def test_a_topic_with_entries_waiting_for_room_reopens_only_after_they_are_stored(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = held_writers(monkeypatch)
    clock = ManualClock(1.0)
    async with opened(sqlite_store(path, clock=clock)) as store:
        ledger = await store.open_ledger(TOPIC)
        ledger.listener = stored = Stored()
        await ledger.flushed()
        made[-1].execute("PRAGMA max_page_count=1")
        written = ledger.append(bytes(1 << 16), digest())
        with pytest.raises(MessageStoreError, match="there is no room"):
            await store.flushed()
        store.close_ledger(TOPIC)
        with pytest.raises(MessageStoreError, match="there is no room"):
            await store.open_ledger(TOPIC)
        made[-1].execute("PRAGMA max_page_count=100000")
        clock.advance(RETRY_SECONDS)
        await stored.event.wait()
        assert (await store.open_ledger(TOPIC)).last_confirmed == written


class Stored(Noting):
    """Records a ledger's reports."""

    def __init__(self) -> None:
        super().__init__()
        self.event = asyncio.Event()

    def confirmed(self, last: Position) -> None:
        """Note a confirmation."""
        super().confirmed(last)
        self.event.set()


# -- deletions --------------------------------------------------------------------------------


async def test_undeleted_entries_of_dropped_ledgers_are_deleted_after_the_next_start(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = held_writers(monkeypatch)
    async with opened(sqlite_store(path)) as store:
        ledger = await store.open_ledger(TOPIC)
        positions = await filled(ledger, 12)
        await settle()
        # The transaction is written, then all deletions fail.
        made[0].errors += [None, sqlite3.OperationalError("interrupted")]
        ledger.trim(positions[10], 0, 0)
        await ledger.flushed()
    assert len(entries_in(path)) == 12
    async with opened(sqlite_store(path)) as store:
        again = await store.open_ledger(TOPIC)
        assert store.room.taken.entries == 2
        assert [entry.data for entry in await again.fetch(EARLIEST, 9, 99)] == [
            b"entry 10",
            b"entry 11",
        ]
        await again.flushed()
    assert entries_in(path) == [positions[10].ledger_id] * 2


async def test_a_recreated_topic_has_no_state_of_the_deleted_topic(path: Path) -> None:
    await make(path)
    async with opened(sqlite_store(path)) as store:
        await store.delete_ledger(TOPIC)
        ledger = await store.open_ledger(TOPIC)
        ledger.append(b"new", digest())
        await ledger.flushed()
    async with opened(sqlite_store(path)) as store:
        ledger = await store.open_ledger(TOPIC)
        assert (dict(ledger.cursors), dict(ledger.properties)) == ({}, {})
        assert [entry.data for entry in await ledger.fetch(EARLIEST, 9, 99)] == [b"new"]
    assert len(entries_in(path)) == 8


async def test_a_topic_with_entries_waiting_for_room_is_not_partly_deleted(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = held_writers(monkeypatch)
    clock = ManualClock(1.0)
    async with opened(sqlite_store(path, clock=clock)) as store:
        ledger = await store.open_ledger(TOPIC)
        await filled(ledger, 7)
        made[-1].execute("PRAGMA max_page_count=1")
        ledger.append(bytes(1 << 16), digest())
        with pytest.raises(MessageStoreError, match="there is no room"):
            await store.flushed()
        with pytest.raises(MessageStoreError, match="there is no room"):
            await store.delete_ledger(TOPIC)
        assert store.holds(TOPIC)
        assert [info.entries for info in ledger.ledgers] == [2]
        assert store.room.taken.entries == 3  # The older ledger is evicted meanwhile.
    # Shutdown gave up waiting deletions.
    async with opened(sqlite_store(path)) as store:
        again = await store.open_ledger(TOPIC)
        found = await again.fetch(EARLIEST, 9, 99)
        assert [entry.data for entry in found] == [b"entry 5", b"entry 6"]
        await store.delete_ledger(TOPIC)
        assert not store.holds(TOPIC)
    async with opened(sqlite_store(path)) as store:
        assert store.names() == []


async def test_a_topic_that_cannot_be_deleted_for_a_disk_error_stays(
    path: Path, monkeypatch
) -> None:
    made = held_writers(monkeypatch)
    async with opened(sqlite_store(path)) as store:
        ledger = await store.open_ledger(TOPIC)
        await filled(ledger, 7)
        made[-1].errors.append(sqlite3.OperationalError("disk I/O error"))
        ledger.append(b"lost", digest())
        for _ in range(2):
            with pytest.raises(MessageStoreError, match="disk I/O error"):
                await store.delete_ledger(TOPIC)
        assert store.holds(TOPIC)
        assert store.room.taken.entries == 7


async def test_a_topic_without_a_free_ledger_number_keeps_its_ledgers(path) -> None:
    async with opened(sqlite_store(path)) as store:
        ledger = await store.open_ledger(TOPIC)
        before = ledger.ledgers
        store._next_id = store._reserved = MOST_IDS
        with pytest.raises(MessageStoreError, match="has no numbers left"):
            ledger.roll()
        assert ledger.ledgers == before
