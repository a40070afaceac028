"""A reader of entries in a message database, which uses threads of its own."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from threading import local
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from broker.messages.entry import Entry
from broker.messages.errors import MessageStoreError
from broker.messages.stores.sqlite.database import (
    ENTRY_BITS,
    ERRORS,
    digest_in,
    is_damage,
    unchecked_digest,
    what_to_do,
)
from proto.excerpts import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from broker.messages.metadata import MessageDigest
    from broker.messages.position import Position
    from broker.messages.stores.sqlite.database import DatabaseFile

logger = logging.getLogger(__name__)
T = TypeVar("T")

THREADS = 2
AT_ONCE = 8
"""The largest number of simultaneous reads, each of which holds entries in memory; further reads
wait."""
_NUMBER_MASK = (1 << ENTRY_BITS) - 1
_RANGE = "SELECT row_id, head, data FROM entries WHERE row_id >= ? AND row_id < ? ORDER BY row_id"
_ONE = "SELECT row_id, head, data FROM entries WHERE row_id = ?"
_CURSORS = "SELECT topic_id, name, state, checksum FROM cursors WHERE topic_id = ?"
_PROPERTIES = "SELECT topic_id, name, value, checksum FROM properties WHERE topic_id = ?"
_HEAD = "SELECT head FROM entries WHERE row_id = ?"


class Read(NamedTuple):
    """The result of reading consecutive entries of a ledger.

    Attributes:
        entries: The undamaged entries, in order.
        damage: A sentence about skipped entries; empty if no entry is damaged.
    """

    entries: list[Entry]
    damage: str = ""


class DatabaseReads:
    """A reader of a message database, independent of its writer.

    Damaged rows are never returned.

    Args:
        file: The database.
        skip_damaged: True to skip damaged entries and continue with the next entries.
    """

    def __init__(self, file: DatabaseFile, *, skip_damaged: bool) -> None:
        self._file = file
        self.skip_damaged = skip_damaged
        self._local = local()
        self._connections: list[sqlite3.Connection] = []
        self._threads = ThreadPoolExecutor(THREADS, "message-reads")
        self._at_once = asyncio.Semaphore(AT_ONCE)
        self._here: sqlite3.Connection | None = None
        self._is_closed = False
        self.fetched_entries = 0

    async def in_thread(self, read: Callable[[sqlite3.Connection], T]) -> T:
        """Run a read function on a thread with its own connection, and return the result.

        Raises:
            MessageStoreError: The read failed.
        """
        loop = asyncio.get_running_loop()
        try:
            async with self._at_once:
                if self._is_closed:
                    raise MessageStoreError("the message store is closed")
                return await loop.run_in_executor(self._threads, self._read, read)
        except ERRORS as error:
            raise self._failure(error) from None

    def _failure(self, error: Exception) -> MessageStoreError:
        reason = f"{one_line(str(error))}{what_to_do(error)}"
        return MessageStoreError(f"the message database {self._file.path} is not read: {reason}")

    def _read(self, read: Callable[[sqlite3.Connection], T]) -> T:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._file.reader()
            self._connections.append(connection)
        return read(connection)

    async def range(self, ledger_id: int, first: int, end: int, max_bytes: int) -> Read:
        """Read consecutive entries of a ledger within a limit of bytes.

        The result has at least one entry, however large, unless that entry is damaged.

        Raises:
            MessageStoreError: The database cannot be read.
        """
        start = ledger_id << ENTRY_BITS
        found = await self.in_thread(
            lambda connection: self._range(connection, start + first, start + end, max_bytes)
        )
        self.fetched_entries += len(found.entries)
        if self.skip_damaged and found.damage:
            logger.warning("%s in the message database %s", found.damage, self._file.path)
        return found

    def _range(self, connection: sqlite3.Connection, first: int, end: int, max_bytes: int) -> Read:
        entries: list[Entry] = []
        size, expected = 0, first
        try:
            for row_id, head, data in self._rows(connection, first, end):
                entry = _entry(row_id, head, data)
                if (entry is None or row_id != expected) and not self.skip_damaged:
                    return Read(entries, f"entry {_named(expected)} is damaged")
                if entry is not None:
                    size += len(entry.data)
                    if entries and size > max_bytes:
                        end = row_id
                        break
                    entries.append(entry)
                expected = row_id + 1
        except sqlite3.DatabaseError as error:
            # Whole entries are returned; the next read starts at the damage.
            if not entries and not is_damage(error):
                raise
            return Read(entries, f"entry {_named(expected)} is damaged")
        if self.skip_damaged:
            return Read(entries, _left_out(first, end - first - len(entries)))
        return Read(entries, "" if entries else f"entry {_named(expected)} is missing")

    def _rows(
        self, connection: sqlite3.Connection, first: int, end: int
    ) -> Iterator[tuple[int, bytes, bytes]]:
        """Yield the rows of a range of entries.

        If damaged entries are to be skipped, each row is read by a separate statement, which finds
        all readable rows.
        """
        if self.skip_damaged:
            # A misplaced page ends a range early, without an error.
            for one in range(first, end):
                yield from _whole_row(connection, one)
            return
        row_id = first
        try:
            for row in connection.execute(_RANGE, (first, end)):
                yield row
                row_id = row[0] + 1
        except sqlite3.DatabaseError:
            # The previous row is missing too: rows are read one ahead.
            for one in range(row_id, end):
                rows = _whole_row(connection, one)
                if not rows:
                    raise
                yield from rows

    async def each(self, positions: Sequence[Position]) -> list[Entry]:
        """Read the entries at the given positions; skip missing and damaged entries.

        Raises:
            MessageStoreError: The database cannot be read.
        """
        row_ids = [(ledger_id << ENTRY_BITS) + entry_id for ledger_id, entry_id in positions]
        found = await self.in_thread(lambda connection: _each(connection, row_ids))
        self.fetched_entries += len(found)
        return found

    async def states(self, topic_id: int) -> tuple[list[Any], list[Any]]:
        """Read the rows that store a topic's cursors and properties, with their checksums.

        Raises:
            MessageStoreError: The database cannot be read.
        """
        return await self.in_thread(
            lambda connection: (
                connection.execute(_CURSORS, (topic_id,)).fetchall(),
                connection.execute(_PROPERTIES, (topic_id,)).fetchall(),
            )
        )

    async def publish_time(self, ledger_id: int, number: int) -> int | None:
        """Return the producer's publish time of an entry; None if missing or damaged.

        Raises:
            MessageStoreError: The database cannot be read.
        """
        row_id = (ledger_id << ENTRY_BITS) + number
        found = await self.in_thread(lambda connection: _digest(connection, row_id))
        return None if found is None else found.publish_time

    def digest(self, position: Position) -> MessageDigest | None:
        """Read an entry's digest on the event loop's thread; None if missing or damaged."""
        row_id = (position.ledger_id << ENTRY_BITS) + position.entry_id
        try:
            if self._here is None:
                self._here = self._file.reader()
                self._here.execute("PRAGMA busy_timeout=0")  # The event loop must not wait.
            return _digest(self._here, row_id)
        except ERRORS:
            return None

    async def close(self) -> None:
        """Stop the reading threads, and close all connections."""
        self._is_closed = True
        await asyncio.to_thread(self._threads.shutdown)
        for connection in self._connections:
            connection.close()
        if self._here is not None:
            self._here.close()


def _digest(connection: sqlite3.Connection, row_id: int) -> MessageDigest | None:
    heads = connection.execute(_HEAD, (row_id,)).fetchall()
    return unchecked_digest(heads[0][0]) if heads else None


def _whole_row(connection: sqlite3.Connection, row_id: int) -> list[tuple[int, bytes, bytes]]:
    """Return a list with the row of a given id.

    Return an empty list if the row is missing, or on a damaged page.
    """
    try:
        return connection.execute(_ONE, (row_id,)).fetchall()
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return []


def _each(connection: sqlite3.Connection, row_ids: Sequence[int]) -> list[Entry]:
    entries = []
    for row_id in row_ids:
        for row in _whole_row(connection, row_id):
            entry = _entry(*row)
            if entry is not None:
                entries.append(entry)
    return entries


def _entry(row_id: int, head: bytes, data: bytes) -> Entry | None:
    digest = digest_in(row_id, head, data)
    if digest is None:
        return None
    return Entry(row_id >> ENTRY_BITS, row_id & _NUMBER_MASK, data, digest)


def _left_out(first: int, entries: int) -> str:
    """Return a sentence about the skipped entries of a range; empty if none were skipped."""
    if not entries:
        return ""
    return f"{entries} of the entries from {_named(first)} on are damaged, and left out"


def _named(row_id: int) -> str:
    return f"{row_id >> ENTRY_BITS}:{row_id & _NUMBER_MASK}"
