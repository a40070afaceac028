import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.messages.errors import MessageStoreError
from broker.messages.position import Position
from broker.messages.stores.sqlite.batch import (
    DELETED_ROWS,
    ROWS_A_STATEMENT,
    Batch,
    DroppedLedger,
)
from broker.messages.stores.sqlite.database import ENTRY_BITS, DatabaseFile, is_intact
from broker.messages.stores.sqlite.sqlite_ledger import SqliteLedger
from tests.support.stores.message_stores import digest


class Topic:
    """A topic that ignores all reports."""

    def stored(self, last: Position) -> None:
        """Ignore."""

    def not_stored(self, error: MessageStoreError) -> None:
        """Ignore."""


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    file = DatabaseFile(tmp_path / "messages.db", temporary=False, fsync=False)
    connection = file.writer()
    yield connection
    connection.close()
    file.release()


def rows(connection: sqlite3.Connection, table: str) -> list[tuple[object, ...]]:
    """Return a table's rows, checksums verified and removed."""
    found = connection.execute(f"SELECT * FROM {table}").fetchall()
    assert all(map(is_intact, found))
    return sorted(row[:-1] for row in found)


def add(batch: Batch, topic: Topic, ledger: SqliteLedger, *entries: bytes) -> None:
    """Add entries as a topic does."""
    for data in entries:
        position = Position(ledger.ledger_id, ledger.add(data, digest()))
        batch.add_entry(topic, ledger, position, data, digest())


def test_the_last_of_several_state_changes_is_written(connection: sqlite3.Connection) -> None:
    batch = Batch()
    for state in (b"1", b"2", b"3"):
        batch.put("cursors", 1, "s", state)
    batch.put("cursors", 2, "s", b"4")
    batch.put("properties", 1, "s", "5")
    batch.write(connection)
    assert rows(connection, "cursors") == [(1, "s", b"3"), (2, "s", b"4")]
    assert rows(connection, "properties") == [(1, "s", "5")]
    assert len(batch.states) == 3


def test_changes_and_deletions_of_a_state_apply_in_order(connection: sqlite3.Connection) -> None:
    batch = Batch()
    batch.put("cursors", 1, "gone", b"1")
    batch.forget("cursors", 1, "gone")
    batch.put("properties", 1, "gone", "1")
    batch.forget("properties", 1, "gone")
    batch.forget("cursors", 1, "there")
    batch.put("cursors", 1, "there", b"2")
    batch.write(connection)
    assert rows(connection, "cursors") == [(1, "there", b"2")]
    assert not rows(connection, "properties")


def test_forgetting_a_topic_deletes_its_cursors_and_properties(
    connection: sqlite3.Connection,
) -> None:
    kept = Batch()
    for topic_id in (1, 2):
        kept.put("topics", topic_id, "persistent://t/n/x")
        kept.put("cursors", topic_id, "s", b"1")
        kept.put("properties", topic_id, "k", "v")
    kept.write(connection)
    batch = Batch()
    batch.put("cursors", 1, "late", b"2")
    batch.put("cursors", 1, "again", b"2")
    batch.forget_topic(1)
    batch.put("cursors", 1, "again", b"3")
    batch.write(connection)
    assert [row[0] for row in rows(connection, "topics")] == [2]
    assert rows(connection, "cursors") == [(1, "again", b"3"), (2, "s", b"1")]
    assert [row[0] for row in rows(connection, "properties")] == [2]


def test_a_ledger_is_written_as_of_the_sealing_of_its_batch(connection) -> None:
    batch, ledger, topic = Batch(), SqliteLedger(7, 1), Topic()
    add(batch, topic, ledger, b"one", b"three")
    batch.seal()
    add(Batch(), topic, ledger, b"of the next")
    batch.write(connection)
    assert rows(connection, "ledgers") == [(7, 1, 2, 8, 0)]


def test_added_entries_are_counted_for_each_topic_and_ledger() -> None:
    batch, one, other = Batch(), Topic(), Topic()
    first, second, third = SqliteLedger(1, 1), SqliteLedger(2, 1), SqliteLedger(3, 2)
    assert not batch
    add(batch, one, first, b"1", b"22")
    add(batch, other, third, b"333")
    add(batch, one, second, b"4444")
    assert batch
    assert batch.last == {one: Position(2, 0), other: Position(3, 0)}
    assert batch.added == {first: [2, 3], third: [1, 3], second: [1, 4]}
    assert batch.size_bytes == 10


@pytest.mark.parametrize("count", [1, ROWS_A_STATEMENT, 2 * ROWS_A_STATEMENT + 1])
def test_any_number_of_entries_is_written_in_multi_row_statements(connection, count) -> None:
    batch, ledger = Batch(), SqliteLedger(1, 1)
    add(batch, Topic(), ledger, *(b"%d" % number for number in range(count)))
    batch.write(connection)
    found = connection.execute("SELECT row_id, data FROM entries ORDER BY row_id").fetchall()
    assert found == [((1 << ENTRY_BITS) + number, b"%d" % number) for number in range(count)]


def test_a_failed_batch_stores_nothing(connection: sqlite3.Connection) -> None:
    batch, ledger = Batch(), SqliteLedger(1, 1)
    add(batch, Topic(), ledger, b"data")
    batch.set_state("broken", "INSERT INTO nowhere VALUES (1)")
    with pytest.raises(sqlite3.OperationalError, match="no such table: nowhere"):
        batch.write(connection)
    assert not connection.in_transaction
    assert not connection.execute("SELECT * FROM entries").fetchall()


@pytest.mark.parametrize(
    ("entries", "size_bytes", "a_step"),
    [
        (5_000, 5_000, DELETED_ROWS),
        (5_000, 5_000 * 16 * 1024, 256),
        (20, 20 * 5 * 1024 * 1024, 16),
    ],
)
def test_a_dropped_ledger_is_deleted_in_steps_bounded_by_rows_and_bytes(
    entries: int, size_bytes: int, a_step: int
) -> None:
    assert DroppedLedger(1, entries, size_bytes).rows_a_step == a_step


def test_a_dropped_ledgers_row_is_deleted_with_its_last_entries(
    connection: sqlite3.Connection,
) -> None:
    batch, topic = Batch(), Topic()
    ledgers = [SqliteLedger(number, 1) for number in (1, 2, 3)]
    for ledger in ledgers:
        add(batch, topic, ledger, *[bytes(1 << 18)] * 40)
    batch.seal()
    batch.write(connection)
    dropped = DroppedLedger(2, 40, 40 << 18)
    left = []
    while not dropped.delete_some(connection):
        left.append(count_of(connection))
        assert len(rows(connection, "ledgers")) == 3
    assert left == [104, 88]
    assert count_of(connection) == 80
    assert [row[0] for row in rows(connection, "ledgers")] == [1, 3]


def count_of(connection: sqlite3.Connection) -> int:
    """Return the number of entries in the database."""
    (count,) = connection.execute("SELECT COUNT(*) FROM entries").fetchone()
    return count
