"""Group commit, a full disk, and errors that end all writing."""

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from broker.messages.errors import MessageStoreError
from broker.messages.position import Position
from broker.messages.stores.sqlite.batch import Batch, DroppedLedger
from broker.messages.stores.sqlite.database import ENTRY_BITS, RESERVE_BYTES, DatabaseFile
from broker.messages.stores.sqlite.sqlite_ledger import RecentEntries, SqliteLedger
from broker.messages.stores.sqlite.writer import (
    ENTRIES_A_TRANSACTION,
    RETRY_SECONDS,
    DatabaseWriter,
)
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle, started
from tests.support.stores.held_connection import HeldConnection
from tests.support.stores.message_stores import digest

PAGE = 16 * 1024


class Disk:
    """A file system, with a terabyte free at first."""

    f_bavail, f_frsize = 1 << 28, 4096


class Topic:
    """A topic with one ledger, recording reports.

    Attributes:
        told: Position of each report of stored entries.
        error: Reason of the failure.
    """

    def __init__(self, ledger_id: int, writer: DatabaseWriter) -> None:
        self.ledger = SqliteLedger(ledger_id, ledger_id)
        self.told: list[int] = []
        self.error: MessageStoreError | None = None
        self._writer = writer

    def append(self, data: bytes = b"data") -> None:
        """Add an entry to the next transaction."""
        batch = self._writer.batch()
        position = Position(self.ledger.ledger_id, self.ledger.add(data, digest()))
        batch.add_entry(self, self.ledger, position, data, digest())

    def stored(self, last: Position) -> None:
        """Record the stored position."""
        self.told.append(last.entry_id)

    def not_stored(self, error: MessageStoreError) -> None:
        """Note the error."""
        assert self.error is None
        self.error = error


class World:
    """A writer with two topics, on a disk filled by tests."""

    def __init__(self, path: Path, disk: Disk) -> None:
        self.disk = disk
        self.file = DatabaseFile(path, temporary=False, fsync=False)
        self.connection = HeldConnection(self.file.writer())
        self.clock = ManualClock()
        self.recent = RecentEntries(1 << 20)
        self.scarce = 0
        self.writer = DatabaseWriter(
            self.file, self.connection, self.recent, self.clock, (), self._note_scarce
        )
        self.one, self.other = Topic(1, self.writer), Topic(2, self.writer)
        self.ended = asyncio.Event()
        self._done = self.writer._done
        self.writer._done = self._note

    def _note_scarce(self) -> None:
        self.scarce += 1

    def _note(self, batch: Batch, error: sqlite3.Error | None, seconds: float) -> None:
        is_ahead = batch is self.writer._ahead
        self._done(batch, error, seconds)
        if error is not None or not is_ahead:
            self.ended.set()

    async def writing(self) -> None:
        """Store an entry of the first topic, whose transaction waits to begin."""
        self.connection.hold()
        self.one.append()
        await settle()

    async def writing_into_a_full_file(self) -> None:
        """Store an entry that the file has no room for, whose transaction waits to begin."""
        await self.writer.flushed()
        self.fill()
        self.connection.hold()
        self.one.append(bytes(2 * PAGE))
        await settle()

    def fill(self) -> None:
        """Leave the file no free page."""
        self.connection.execute("PRAGMA max_page_count=1")

    def leave_free(self, free_bytes: int) -> None:
        """Set the free space of the disk."""
        self.disk.f_bavail = free_bytes // self.disk.f_frsize

    def make_room(self) -> None:
        self.connection.execute("PRAGMA max_page_count=100000")

    async def filled(self) -> None:
        """Make both topics wait for space, the second topic behind the first."""
        await self.writer.flushed()
        self.fill()
        self.one.append(bytes(2 * PAGE))
        with pytest.raises(MessageStoreError, match="there is no room for the message database"):
            await self.writer.flushed()
        self.other.append(b"behind it")
        await settle()

    async def tried_again(self) -> None:
        """Advance the clock to the next retry, and wait for the retry's end."""
        self.ended.clear()
        self.clock.advance(RETRY_SECONDS)
        await self.ended.wait()

    def stored(self, query: str) -> list[Any]:
        """Return the database's content, except SQLite's reserve for the writer."""
        with closing(sqlite3.connect(self.file.path)) as reader:
            return [value for (value,) in reader.execute(query)]

    def entries(self) -> list[int]:
        """The ledger of each stored entry."""
        found = self.stored("SELECT row_id FROM entries ORDER BY row_id")
        return [row_id >> ENTRY_BITS for row_id in found]

    def ledgers(self) -> list[int]:
        """Return the known ledgers."""
        return self.stored("SELECT ledger_id FROM ledgers ORDER BY ledger_id")

    def cursors(self) -> list[bytes]:
        """The states of all subscriptions."""
        return self.stored("SELECT state FROM cursors")


@pytest.fixture
async def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    disk = Disk()
    monkeypatch.setattr("os.statvfs", lambda _: disk)
    world = World(tmp_path / "messages.db", disk)
    yield world
    world.connection.release()
    await world.writer.close()
    world.file.release()


# -- group commit -----------------------------------------------------------------------------


async def test_entries_of_a_turn_are_stored_in_a_single_transaction(world: World) -> None:
    for topic in (world.one, world.other):
        for _ in range(4):
            topic.append()
    assert world.one.told == []
    await world.writer.flushed()
    assert world.connection.transactions == world.writer.figures.transactions == 1
    assert (world.one.told, world.other.told) == ([3], [3])
    assert world.entries() == [1] * 4 + [2] * 4


async def test_entries_added_during_a_transaction_form_the_next_transaction(world: World) -> None:
    await world.writing()
    for _ in range(3):
        world.one.append()
        world.other.append()
        await settle()
    assert (world.one.told, world.one.ledger.confirmed) == ([], 0)
    assert world.writer.unwritten_bytes == 7 * len(b"data")
    world.connection.release()
    await world.writer.flushed()
    assert world.connection.transactions == 2
    assert (world.one.told, world.other.told) == ([0, 3], [2])
    assert (world.one.ledger.confirmed, world.other.ledger.confirmed) == (4, 3)
    assert world.writer.unwritten_bytes == 0


async def test_many_waiting_entries_are_split_into_transactions_confirmed_separately(
    world: World,
) -> None:
    await world.writing()
    for _ in range(2 * ENTRIES_A_TRANSACTION):
        world.one.append(b"x")
    world.other.append()
    world.connection.release()
    await world.writer.flushed()
    most = ENTRIES_A_TRANSACTION
    assert (world.one.told, world.other.told) == ([0, most, 2 * most], [0])
    assert world.connection.transactions == 4


async def test_a_ledger_row_counts_only_the_entries_of_its_transaction(world: World) -> None:
    await world.writing()
    for _ in range(2 * ENTRIES_A_TRANSACTION):
        world.one.append(b"x")
    world.connection.errors += [None, None, sqlite3.OperationalError("disk I/O error")]
    world.connection.release()
    with pytest.raises(MessageStoreError, match="disk I/O error"):
        await world.writer.flushed()
    (stored,) = world.connection.execute("SELECT entries FROM ledgers").fetchall()
    assert stored == (len(world.entries()),) == (1 + ENTRIES_A_TRANSACTION,)
    assert world.one.error is not None


async def test_a_stored_entry_is_readable_from_memory(world: World) -> None:
    world.one.append()
    await world.writer.flushed()
    assert world.recent.size_bytes > 0
    assert world.one.ledger.end_of_recent(0, 9, 99) == 1


async def test_a_flush_waits_for_the_transaction_in_progress(world: World) -> None:
    await world.writing()
    before = await started(world.writer.flushed())
    assert not before.done()
    world.connection.release()
    await before
    assert world.one.told == [0]


async def test_a_flush_with_nothing_to_write_starts_no_transaction(world: World) -> None:
    await world.writer.flushed()
    assert world.connection.transactions == 0


async def test_closing_writes_the_waiting_entries(world: World) -> None:
    await world.writing()
    world.other.append()
    closing = await started(world.writer.close())
    world.connection.release()
    await closing
    assert world.entries() == [1, 2]
    assert (world.one.told, world.other.told) == ([0], [0])
    with pytest.raises(MessageStoreError, match="the message store is closed"):
        world.writer.batch()


async def test_an_entry_added_while_the_writer_closes_is_refused(world) -> None:
    async def adding() -> None:
        await world.writer.flushed()
        world.other.append()
        await world.writer.flushed()

    await world.writing()
    late = await started(adding())
    closing = await started(world.writer.close())
    world.connection.release()
    await closing
    await settle()
    assert late.done()
    with pytest.raises(MessageStoreError, match="the message store is closed"):
        await late
    assert world.entries() == [1]


async def test_a_failing_confirmation_callback_does_not_affect_other_topics(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(world.one, "stored", raising)
    monkeypatch.setattr(world.one, "not_stored", raising)
    world.one.append()
    world.other.append()
    await world.writer.flushed()
    assert world.other.told == [0]
    world.connection.errors.append(sqlite3.OperationalError("disk I/O error"))
    world.one.append()
    world.other.append()
    with pytest.raises(MessageStoreError, match="disk I/O error"):
        await world.writer.flushed()
    assert world.other.error is not None
    await world.writer.close()
    failures = [record for record in caplog.records if record.exc_info]
    assert [one.getMessage().startswith("a callback of") for one in failures] == [True, True]


async def test_a_failing_callback_for_a_full_disk_does_not_stop_the_retries(
    world: World, monkeypatch
) -> None:
    monkeypatch.setattr(world.writer, "_on_full", raising)
    await world.filled()
    world.make_room()
    await world.tried_again()
    await world.writer.flushed()
    assert (world.one.told, world.other.told) == ([0], [0])


# -- a full disk ------------------------------------------------------------------------------


async def test_on_a_full_disk_all_entries_wait_unconfirmed_and_none_fails(world: World) -> None:
    await world.filled()
    assert world.writer.held_up_by is not None
    assert (world.one.told, world.one.error, world.other.told) == ([], None, [])
    assert world.writer.unwritten_bytes == 2 * PAGE + len(b"behind it")
    await world.tried_again()
    assert world.writer.held_up_by is not None
    assert world.writer.figures.failures == 2


async def test_each_retry_on_a_full_disk_asks_to_free_unneeded_data(world: World) -> None:
    await world.filled()
    assert world.scarce == 1
    await world.tried_again()
    assert world.scarce == 2
    world.make_room()
    await world.tried_again()
    assert world.scarce == 2


async def test_waiting_entries_are_stored_in_order_once_there_is_room(world: World) -> None:
    await world.filled()
    world.make_room()
    assert world.one.told == []
    await world.tried_again()
    await world.writer.flushed()
    assert world.writer.held_up_by is None
    assert (world.one.told, world.other.told) == ([0], [0])
    assert world.entries() == [1, 2]


async def test_a_flush_fails_while_the_disk_is_full(world: World) -> None:
    await world.filled()
    with pytest.raises(MessageStoreError, match=r"free some room on its disk: pending messages"):
        await world.writer.flushed()
    world.make_room()
    await world.tried_again()
    await world.writer.flushed()


async def test_a_waiting_flush_fails_when_the_disk_is_full(world: World) -> None:
    await world.writing_into_a_full_file()
    behind = await started(world.writer.flushed())
    world.connection.release()
    with pytest.raises(MessageStoreError, match="there is no room"):
        await behind


async def test_a_full_disk_and_its_end_are_logged_once_each(world: World, caplog) -> None:
    await world.filled()
    await world.tried_again()
    world.make_room()
    await world.tried_again()
    await world.writer.flushed()
    texts = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert [text.startswith("there is no room") for text in texts] == [True, False]
    assert texts[1].endswith("is written again")


async def test_closing_on_a_full_disk_gives_up_the_waiting_entries(world: World) -> None:
    await world.filled()
    await world.writer.close()
    for topic in (world.one, world.other):
        assert "there is no room" in str(topic.error)
        assert topic.told == []
    assert world.entries() == []


async def test_closing_during_a_write_on_a_full_disk_stores_cursors(world: World) -> None:
    await world.writing_into_a_full_file()
    world.writer.batch().put("cursors", 1, "s", b"new")
    closing = await started(world.writer.close())
    world.connection.release()
    await closing
    assert world.cursors() == [b"new"]
    assert "there is no room" in str(world.one.error)


async def test_closing_once_there_is_room_again_loses_no_entry(world: World) -> None:
    await world.filled()
    world.make_room()
    await world.writer.close()
    assert world.entries() == [1, 2]


# -- other errors -----------------------------------------------------------------------------


async def test_any_other_error_ends_all_writing_and_is_reported_to_every_topic(
    world: World,
) -> None:
    await world.writing()
    world.other.append()
    waiting = await started(world.writer.flushed())
    world.connection.errors.append(sqlite3.OperationalError("disk I/O error"))
    world.connection.release()
    ends = r"cannot be written: disk I/O error; fix that, then restart the broker"
    with pytest.raises(MessageStoreError, match=ends):
        await waiting
    for topic in (world.one, world.other):
        assert "disk I/O error" in str(topic.error)
        with pytest.raises(MessageStoreError, match=ends):
            topic.append()
    with pytest.raises(MessageStoreError, match=ends):
        await world.writer.flushed()
    assert world.entries() == []
    assert world.writer.held_up_by is None


async def test_an_error_outside_the_database_ends_all_writing_too(world: World) -> None:
    world.connection.errors.append(MemoryError())
    world.one.append()
    with pytest.raises(MessageStoreError, match="cannot be written: MemoryError; fix that"):
        await world.writer.flushed()
    assert world.one.error is not None


async def test_an_error_outside_the_database_during_a_deletion_does_not_stop_writing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.one.append()
    await world.writer.flushed()
    monkeypatch.setattr(DroppedLedger, "delete_some", raising)
    world.writer.batch().drop(world.one.ledger)
    await world.writer.flushed()
    world.other.append()
    await world.writer.flushed()
    assert world.other.told == [0]


def raising(*_: object) -> bool:
    """Have no memory."""
    raise MemoryError


async def test_a_write_error_is_not_reported_to_a_topic_without_waiting_entries(
    world: World,
) -> None:
    world.one.append()
    await world.writer.flushed()
    world.connection.errors.append(sqlite3.DatabaseError("malformed"))
    world.other.append()
    with pytest.raises(MessageStoreError):
        await world.writer.flushed()
    assert world.one.error is None
    assert world.other.error is not None


async def test_an_io_error_on_a_full_disk_is_lack_of_room(world: World) -> None:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_SHMSIZE
    assert not world.file.has_no_room(error)
    world.leave_free(40_000)
    assert world.file.has_no_room(error)
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    assert not world.file.has_no_room(error)


# -- a nearly full disk -----------------------------------------------------------------------


async def test_entries_that_would_use_the_room_reserved_for_deletions_wait(world: World) -> None:
    world.leave_free(RESERVE_BYTES)
    world.one.append()
    with pytest.raises(MessageStoreError, match="there is no room for the message database"):
        await world.writer.flushed()
    world.leave_free(2 * RESERVE_BYTES)
    await world.tried_again()
    assert world.one.told == [0]


async def test_while_entries_wait_for_room_cursors_are_stored_and_dropped_ledgers_deleted(
    world: World,
) -> None:
    await nearly_filled(world)
    batch = world.writer.batch()
    batch.drop(world.other.ledger)
    batch.put("cursors", 1, "s", b"new")
    await world.tried_again()
    assert world.cursors() == [b"new"]
    assert world.entries() == []
    await world.tried_again()
    assert (world.one.told, world.writer.held_up_by is None) == ([], False)
    world.leave_free(2 * RESERVE_BYTES)
    await world.tried_again()
    assert world.entries() == [1]
    assert world.ledgers() == [1]


async def test_a_state_stored_ahead_does_not_overwrite_a_newer_state(world) -> None:
    await nearly_filled(world)
    world.writer.batch().put("cursors", 1, "s", b"old")
    world.leave_free(0)
    await world.tried_again()
    world.writer.batch().put("cursors", 1, "s", b"new")
    world.leave_free(2 * RESERVE_BYTES)
    await world.tried_again()
    await world.writer.flushed()
    assert world.cursors() == [b"new"]
    assert world.one.told == [0]


async def test_a_ledger_dropped_before_its_entries_are_stored_is_deleted_afterwards(
    world: World,
) -> None:
    await nearly_filled(world)
    world.writer.batch().drop(world.one.ledger)
    await world.tried_again()
    world.leave_free(2 * RESERVE_BYTES)
    await world.tried_again()
    await world.writer.close()
    assert world.entries() == [2]
    assert world.ledgers() == [2]


async def nearly_filled(world: World) -> None:
    """Make an entry of the first topic wait for space, with an entry of the second topic stored."""
    world.other.append()
    await world.writer.flushed()
    world.leave_free(RESERVE_BYTES)
    world.one.append()
    with pytest.raises(MessageStoreError):
        await world.writer.flushed()


# -- a locked database ------------------------------------------------------------------------


async def test_a_database_locked_by_another_process_is_written_once_unlocked(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.connection.execute("PRAGMA busy_timeout=1")
    with closing(sqlite3.connect(world.file.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        world.one.append()
        with pytest.raises(MessageStoreError, match="another process has locked the message data"):
            await world.writer.flushed()
        assert (world.one.told, world.one.error) == ([], None)
    await world.tried_again()
    assert world.one.told == [0]
    assert caplog.messages[-1].endswith("is written again")


# -- deletions --------------------------------------------------------------------------------


async def test_a_dropped_ledger_is_deleted_after_entries_of_the_same_transaction(
    world: World,
) -> None:
    world.one.append()
    world.other.append()
    batch = world.writer.batch()
    batch.drop(world.one.ledger)
    await world.writer.close()
    assert world.entries() == [2]


async def test_an_interrupted_deletion_of_a_ledger_is_logged_and_done_by_the_next_write(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.one.append()
    await world.writer.flushed()
    world.connection.hold()
    world.writer.batch().drop(world.one.ledger)
    world.other.append()
    deleting = await started(world.writer.flushed())
    interrupted = sqlite3.OperationalError("interrupted")
    interrupted.sqlite_errorcode = sqlite3.SQLITE_INTERRUPT
    world.connection.errors += [None, interrupted]
    world.connection.release()
    await deleting
    world.other.append()
    await world.writer.close()
    assert world.entries() == [2, 2]
    (record,) = caplog.records
    assert record.getMessage().startswith("dropped entries stay in")
