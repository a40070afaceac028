"""The writes of one transaction on a message database."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any, Protocol

from broker.messages.stores.sqlite.database import ENTRY_BITS, PAGE_BYTES, head_of, row_checksum

if TYPE_CHECKING:
    import asyncio
    import sqlite3
    from collections.abc import Container

    from broker.messages.errors import MessageStoreError
    from broker.messages.metadata import MessageDigest
    from broker.messages.position import Position
    from broker.messages.stores.sqlite.sqlite_ledger import SqliteLedger

NOBODY = 0
"""The topic id in rows of dropped ledgers whose entries are still to be deleted; no topic has this
id."""
ROWS_A_STATEMENT = 128
"""The number of entries written by one statement; each statement reacquires the interpreter
lock."""
DELETED_BYTES, DELETED_ROWS = 4 * 1024 * 1024, 2_000
"""The largest number of bytes and entries of a dropped ledger deleted in one transaction."""

_KEYS = {"store": 1, "topics": 1, "ledgers": 1, "cursors": 2, "properties": 2}
"""The tables of the catalog, and the number of columns of their keys."""


class Writing(Protocol):
    """The interface (typing Protocol) of a topic that waits until its entries are stored."""

    def stored(self, last: Position) -> None:
        """Record that all entries up to a position are stored."""

    def not_stored(self, error: MessageStoreError) -> None:
        """Give up the topic's unstored entries, because writing failed."""


class DroppedLedger:
    """An unneeded ledger, whose entries are deleted from the database in steps.

    Attributes:
        ledger_id: The ledger's number.
        entries: The number of entries.
        rows_a_step: The number of entries deleted per transaction.
        deleted: The number of entries deleted so far.
    """

    def __init__(self, ledger_id: int, entries: int, size_bytes: int) -> None:
        self.ledger_id = ledger_id
        self.entries = entries
        mean = max(1, size_bytes // max(1, entries))
        self.rows_a_step = min(DELETED_ROWS, max(16, DELETED_BYTES // mean))
        self.deleted = 0

    def delete_some(self, connection: sqlite3.Connection) -> bool:
        """Delete some entries in a separate transaction; return True once all are deleted."""
        first = (self.ledger_id << ENTRY_BITS) + self.deleted
        end = first + self.rows_a_step
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DELETE FROM entries WHERE row_id >= ? AND row_id < ?", (first, end))
        deleted = self.deleted + self.rows_a_step
        if deleted >= self.entries:
            connection.execute("DELETE FROM ledgers WHERE ledger_id = ?", (self.ledger_id,))
        connection.execute("COMMIT")
        self.deleted = deleted
        return deleted >= self.entries


class Batch:
    """The writes that one transaction stores in the database.

    The batch collects the writes of one event-loop turn, or those made during the previous
    transaction.

    Attributes:
        entries: Row id, bytes and digest of each entry.
        last: Topics with entries in the batch, and the last entry of each.
        added: Entries and bytes of each ledger with entries in the batch.
        changed: Ledgers whose sizes are written with the batch.
        states: SQL statements that write rows other than entries; only the last statement of a key
            is executed.
        dropped: Ledgers to delete after the batch.
        waiting: Futures settled once the batch is stored or has failed.
        size_bytes: Bytes of the entries.
    """

    def __init__(self) -> None:
        self.entries: list[tuple[int, bytes, MessageDigest]] = []
        self.last: dict[Writing, Position] = {}
        self.added: dict[SqliteLedger, list[int]] = {}
        self.changed: dict[SqliteLedger, None] = {}
        self.states: dict[tuple[Any, ...], tuple[str, tuple[object, ...]]] = {}
        self.dropped: list[DroppedLedger] = []
        self.waiting: list[asyncio.Future[None]] = []
        self.size_bytes = 0

    def __bool__(self) -> bool:
        return bool(self.entries or self.changed or self.states or self.dropped)

    @property
    def page_bytes(self) -> int:
        """The most bytes that the database pages with the entries can take.

        Each entry may leave one page partly filled.
        """
        return self.size_bytes + sum(min(len(data), PAGE_BYTES) for _, data, _ in self.entries)

    def add_entry(
        self,
        topic: Writing,
        ledger: SqliteLedger,
        position: Position,
        data: bytes,
        digest: MessageDigest,
    ) -> None:
        """Add a new entry of a topic to the batch."""
        row_id = (position.ledger_id << ENTRY_BITS) + position.entry_id
        self.entries.append((row_id, data, digest))
        self.last[topic] = position
        added = self.added.get(ledger)
        if added is None:
            added = self.added[ledger] = [0, 0]
            self.changed[ledger] = None
        added[0] += 1
        added[1] += len(data)
        self.size_bytes += len(data)

    def set_state(self, key: tuple[Any, ...], statement: str, *values: object) -> None:
        """Add a SQL statement, which replaces any earlier statement with the same key."""
        self.states.pop(key, None)
        self.states[key] = statement, values

    def drop(self, ledger: SqliteLedger) -> None:
        """Detach a ledger from its topic, and schedule the deletion of its entries."""
        ledger.topic_id = NOBODY
        self._set_ledger(ledger)
        self.dropped.append(DroppedLedger(ledger.ledger_id, len(ledger), ledger.size_bytes))

    def seal(self) -> None:
        """Add the statements that store the final sizes of ledgers; no entries may follow."""
        for ledger in self.changed:
            if ledger.topic_id != NOBODY:
                self._set_ledger(ledger)

    def _set_ledger(self, ledger: SqliteLedger) -> None:
        sizes = len(ledger), ledger.size_bytes, ledger.closed_at
        self.put("ledgers", ledger.ledger_id, ledger.topic_id, *sizes)

    def take_states(self, batch: Batch, growing: Container[int]) -> None:
        """Take those statements of a later batch that do not depend on unstored entries.

        Args:
            batch: The later batch, which keeps its entries and the states of their ledgers.
            growing: Numbers of the ledgers with unstored entries.
        """
        keys = [key for key in batch.states if not (key[0] == "ledgers" and key[1] in growing)]
        for key in keys:
            statement, values = batch.states.pop(key)
            self.set_state(key, statement, *values)
        self.dropped += [one for one in batch.dropped if one.ledger_id not in growing]
        batch.dropped = [one for one in batch.dropped if one.ledger_id in growing]

    def write(self, connection: sqlite3.Connection) -> None:
        """Write the whole batch in one transaction.

        Raises:
            sqlite3.Error: No part of the batch is stored.
        """
        # Stores the entries of a ledger together, despite alternating topics.
        self.entries.sort(key=itemgetter(0))
        connection.execute("BEGIN IMMEDIATE")
        try:
            for first in range(0, len(self.entries), ROWS_A_STATEMENT):
                some = self.entries[first : first + ROWS_A_STATEMENT]
                rows: list[object] = []
                for row_id, data, digest in some:
                    rows += (row_id, head_of(row_id, data, digest), data)
                connection.execute(_insertion(len(some)), rows)
            for statement, values in self.states.values():
                connection.execute(statement, values)
            connection.execute("COMMIT")
        except BaseException:
            # A full disk has already rolled back; the original error must be raised.
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    # -- states -------------------------------------------------------------------------------

    def put(self, table: str, *row: Any) -> None:  # noqa: ANN401
        """Add the statement that stores a row with its checksum in any table except ``entries``."""
        statement = f"REPLACE INTO {table} VALUES ({'?, ' * len(row)}?)"
        self.set_state((table, *row[: _KEYS[table]]), statement, *row, row_checksum(*row))

    def forget(self, table: str, topic_id: int, name: str) -> None:
        """Add the statement that deletes a subscription or a property of a topic."""
        statement = f"DELETE FROM {table} WHERE topic_id = ? AND name = ?"
        self.set_state((table, topic_id, name), statement, topic_id, name)

    def forget_topic(self, topic_id: int) -> None:
        """Add the statements that delete a topic with all its subscriptions and properties."""
        for table in ("topics", "cursors", "properties"):
            statement = f"DELETE FROM {table} WHERE topic_id = ?"
            self.set_state((table, topic_id), statement, topic_id)


_insertions: dict[int, str] = {}


def _insertion(rows: int) -> str:
    found = _insertions.get(rows)
    if found is None:
        values = ",".join(["(?,?,?)"] * rows)
        found = _insertions[rows] = f"INSERT INTO entries VALUES {values}"
    return found
