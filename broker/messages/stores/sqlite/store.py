"""A message store in a SQLite database file, durable or temporary."""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING, Any, NamedTuple

from broker.messages.errors import MessageStoreError
from broker.messages.stores.ledger_row import LedgerRow
from broker.messages.stores.managed_ledger import MessageStore
from broker.messages.stores.sqlite.batch import NOBODY, DroppedLedger
from broker.messages.stores.sqlite.database import (
    ENTRY_BITS,
    ERRORS,
    FROM_A_COPY,
    PAGE_BYTES,
    DatabaseFile,
    is_intact,
    row_checksum,
    temporary_database,
    what_to_do,
)
from broker.messages.stores.sqlite.managed_ledger import (
    DatabaseParts,
    SqliteManagedLedger,
    SqliteTopic,
    cursor_state,
)
from broker.messages.stores.sqlite.reads import DatabaseReads
from broker.messages.stores.sqlite.sqlite_ledger import RecentEntries, SqliteLedger
from broker.messages.stores.sqlite.writer import DatabaseWriter
from proto.excerpts import one_line

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable
    from pathlib import Path

    from broker.messages.stores.managed_ledger import ManagedLedger
    from broker.messages.stores.room import StoreBounds, StoreFigures
    from limiter.clock import Clock

RECENT_BYTES = 16 * 1024 * 1024
"""The bytes of newest entries kept in memory: enough for consumers that keep up with producers."""
IDS_AT_ONCE = 1_000
"""The number of ids that one write to the database reserves."""
MOST_IDS = 1 << (63 - ENTRY_BITS)
"""The number of possible ledger numbers, which are the first bits of a row's id."""
MAX_ENTRIES_PER_LEDGER = 50_000
"""managedLedgerMaxEntriesPerLedger of Pulsar as shipped."""
_SPARE_BYTES = 256 * 1024 * 1024
"""The bytes by which the file may exceed twice the limit, because pages are partly filled and are
freed later."""


class DatabaseOptions(NamedTuple):
    """The options for opening a message database.

    Attributes:
        fsync: True to confirm a message only once it is on the disk.
        skip_damaged: True to skip damaged data instead of raising an error.
        temporary: True to create the database in a new folder, and to delete it at the end.
    """

    fsync: bool = False
    skip_damaged: bool = False
    temporary: bool = False
    max_entries_per_ledger: int = MAX_ENTRIES_PER_LEDGER


class _Catalog(NamedTuple):
    """The rows of the database that are read when the store is opened.

    Their number does not grow with the number of entries.
    """

    store: dict[str, str]
    topics: list[tuple[int, str]]
    ledgers: list[tuple[int, int, int, int, int]]


class SqliteMessageStore(MessageStore):
    """A store of messages and cursors in a database (``floodgateMessageStore=sqlite:///path``).

    Args:
        path: The database file; for a temporary database the parent folder.
        clock: The clock that times retries on a full disk, and the closing of ledgers.
        bounds: The largest number of bytes for a topic, for a namespace and for the store.
        options: The options of the database.
        recent_bytes: Memory for the newest entries of all topics.
    """

    def __init__(
        self,
        path: Path,
        clock: Clock,
        bounds: StoreBounds,
        options: DatabaseOptions,
        recent_bytes: int = RECENT_BYTES,
    ) -> None:
        super().__init__(bounds)
        self._path = path
        self._clock = clock
        self._options = options
        self._recent = RecentEntries(recent_bytes)
        self._topics: dict[str, SqliteTopic] = {}
        self._next_id = self._reserved = 1
        self._file: DatabaseFile | None = None
        self._parts: DatabaseParts

    # -- life cycle ---------------------------------------------------------------------------

    async def open(self) -> None:
        """Open the database, and read its topics and ledgers.

        Raises:
            MessageStoreError: The database cannot be opened, or the catalog is damaged.
        """
        options = self._options
        path = self._path
        if options.temporary:
            path = await asyncio.to_thread(_new_temporary, path)
        file = DatabaseFile(path, temporary=options.temporary, fsync=options.fsync)
        try:
            await self._open_file(file)
        except BaseException:
            file.release()
            raise
        self._file = file

    async def _open_file(self, file: DatabaseFile) -> None:
        bound = self.room.bounds.process
        max_pages = (2 * bound + _SPARE_BYTES) // PAGE_BYTES if bound else 0
        connection: sqlite3.Connection | None = None
        try:
            connection = await asyncio.to_thread(file.writer, max_pages)
            catalog = await asyncio.to_thread(self._catalog, connection)
            dropped = self._take(catalog)
            identity = catalog.store.get("identity") or self._new_identity(connection)
        except BaseException as error:
            if connection is not None:
                connection.close()
            if isinstance(error, ERRORS):
                raise self._not_opened(file, error) from None
            raise
        # A temporary database is named like memory: other brokers do not wait for its messages.
        self.identity = f"memory-{identity}" if file.temporary else identity
        reads = DatabaseReads(file, skip_damaged=self._options.skip_damaged)
        writer = DatabaseWriter(
            file, connection, self._recent, self._clock, dropped, self.room.tell_scarce
        )
        self._parts = DatabaseParts(
            writer, reads, self.next_id, self._clock.wall_ms, self._options.max_entries_per_ledger
        )

    def _not_opened(self, file: DatabaseFile, error: Exception) -> MessageStoreError:
        if file.has_no_room(error):
            return MessageStoreError(
                f"there is no room for the message database {self._path}; free some room on its "
                "disk, then start the broker again"
            )
        reason = f"{one_line(str(error))}{what_to_do(error)}"
        return MessageStoreError(f"the message database {self._path} cannot be opened: {reason}")

    @staticmethod
    def _new_identity(connection: sqlite3.Connection) -> str:
        row = ("identity", uuid.uuid4().hex)
        connection.execute("REPLACE INTO store VALUES (?, ?, ?)", (*row, row_checksum(*row)))
        return row[1]

    def _catalog(self, connection: sqlite3.Connection) -> _Catalog:
        store = "SELECT key, value, checksum FROM store"
        topics = "SELECT topic_id, name, checksum FROM topics"
        ledgers = (
            "SELECT ledger_id, topic_id, entries, size_bytes, closed_at, checksum FROM ledgers "
            "ORDER BY ledger_id"
        )
        return _Catalog(
            dict(self._intact(connection.execute(store), "an entry of its store")),
            self._intact(connection.execute(topics), "a topic"),
            self._intact(connection.execute(ledgers), "a ledger"),
        )

    def _intact(self, rows: Iterable[tuple[Any, ...]], what: str) -> list[tuple[Any, ...]]:
        """Compare rows with their checksums; return the undamaged rows without checksums.

        Raises:
            MessageStoreError: A row is damaged.
        """
        intact = []
        for row in rows:
            if is_intact(row):
                intact.append(row[:-1])
            else:
                self._leave_out(what)
        return intact

    def _leave_out(self, what: str) -> None:
        if not self._options.skip_damaged:
            raise MessageStoreError(
                f"the message database {self._path} is damaged: {what} is not as it was "
                f"written; {FROM_A_COPY}, or start the broker with "
                "floodgateMessageStoreDropDamaged=true, which skips damaged data"
            )

    def _take(self, catalog: _Catalog) -> list[DroppedLedger]:
        """Create the stored topics; return the ledgers whose entries are still to be deleted."""
        dropped = []
        by_id: dict[int, SqliteTopic] = {}
        for topic_id, name in catalog.topics:
            topic = SqliteTopic(name, topic_id, LedgerRow([]), self.room.of_topic(name))
            self._topics[name] = by_id[topic_id] = topic
        for row in catalog.ledgers:
            ledger_id, topic_id, entries, size_bytes, _ = row
            owner = by_id.get(topic_id)
            if owner is None:
                if topic_id != NOBODY:
                    self._leave_out("a topic")  # The topic's row is missing.
                dropped.append(DroppedLedger(ledger_id, entries, size_bytes))
                continue
            owner.row.add(SqliteLedger.stored(*row))
            owner.room.charge(entries, size_bytes)
        ids = (*by_id, *(row[0] for row in catalog.ledgers))
        self._reserved = max(int(catalog.store.get("ids", 1)), max(ids, default=0) + 1)
        self._next_id = self._reserved
        return dropped

    async def close(self) -> None:
        """Write pending entries, and close the database file."""
        if self._file is None:
            return
        file, self._file = self._file, None
        self._close_ledgers()
        await self._parts.reads.close()
        await self._parts.writer.close()
        await asyncio.to_thread(file.release)

    # -- topics -------------------------------------------------------------------------------

    async def flushed(self) -> None:
        """Wait until all previous writes are stored.

        Raises:
            MessageStoreError: A write failed, or the store accepts no writes.
        """
        await self._parts.writer.flushed()

    def next_id(self) -> int:
        """Return a new number, for example for a ledger; each number is higher than all before.

        Raises:
            MessageStoreError: The store accepts no writes, or all numbers are used.
        """
        if self._next_id >= MOST_IDS:
            raise MessageStoreError(
                f"the message database {self._path} has no numbers left for ledgers; move it away "
                "to begin with an empty one"
            )
        if self._next_id >= self._reserved:
            self._parts.writer.batch().put("store", "ids", str(self._next_id + IDS_AT_ONCE))
            self._reserved = self._next_id + IDS_AT_ONCE
        self._next_id += 1
        return self._next_id - 1

    async def open_ledger(self, name: str) -> ManagedLedger:
        """Open a topic's ledger, or return the ledger if it is already open.

        Raises:
            MessageStoreError: The ledger cannot be read, or the store accepts no writes.
        """
        topic = self._topics.get(name)
        if name not in self._open:
            # Pending writes belong to the previous opening.
            try:
                await self._parts.writer.flushed()
            except MessageStoreError:
                if topic is not None and topic.row.is_under_way:
                    raise
        topic = self._topics.get(name)
        if topic is not None and not topic.is_read:
            states = await self._parts.reads.states(topic.topic_id)
            if not topic.is_read:  # A concurrent call may have opened the topic meanwhile.
                self._take_states(topic, *states)
        found = self._open.get(name)
        return found if found is not None else self._open_now(name)

    async def unopened_ledger(self, name: str) -> ManagedLedger | None:
        """Return the stored ledger of a topic that is not open.

        Return None if the topic is open, or has no stored entries.

        Raises:
            MessageStoreError: The ledger cannot be read.
        """
        topic = self._topics.get(name)
        if topic is None or name in self._open or not topic.row or not topic.row.entries:
            return None
        if not topic.is_read:
            states = await self._parts.reads.states(topic.topic_id)
            topic = SqliteTopic(name, topic.topic_id, topic.row, topic.room)
            self._take_states(topic, *states)
        topic.row.look_for_last()
        return SqliteManagedLedger(topic, self._parts)

    def _take_states(self, topic: SqliteTopic, cursors: list[Any], properties: list[Any]) -> None:
        topic.cursors.clear()
        for _, name, state in self._intact(cursors, f"a subscription of {topic.name}"):
            topic.cursors[name] = cursor_state(state)
        topic.properties.clear()
        for _, name, value in self._intact(properties, f"a property of {topic.name}"):
            topic.properties[name] = value
        topic.is_read = True

    def _open_now(self, name: str) -> SqliteManagedLedger:
        topic = self._topics.get(name)
        if topic is None:
            topic_id = self.next_id()
            self._parts.writer.batch().put("topics", topic_id, name)
            topic = SqliteTopic(name, topic_id, LedgerRow([]), self.room.of_topic(name))
            topic.is_read = True
            self._topics[name] = topic
        ledger = SqliteManagedLedger(topic, self._parts)
        ledger.roll()
        topic.row.look_for_last()
        self._open[name] = ledger
        return ledger

    async def delete_ledger(self, name: str) -> None:
        """Delete the messages and cursors of a topic, if any.

        Raises:
            MessageStoreError: The deletion could not be written. Pending entries and the topic
                stay; earlier ledgers are deleted, which may free space for the deletion.
        """
        while (topic := self._closed(name)) is not None and topic.row.is_under_way:
            try:
                await self._parts.writer.flushed()
            except MessageStoreError:
                if topic.row.is_under_way:
                    SqliteManagedLedger(topic, self._parts).truncate()
                    raise
        if topic is None:
            return
        batch = self._parts.writer.batch()  # On a failed writer, the topic stays.
        del self._topics[name]
        topic.room.leave()
        batch.forget_topic(topic.topic_id)
        # An empty ledger replaces the topic's ledgers, so remaining references read no entries.
        topic.row.add(SqliteLedger(self._next_id, NOBODY))
        for ledger in topic.row.take(len(topic.row) - 1):
            self._parts.writer.drop(ledger, batch)
        await self._parts.writer.flushed()

    def _closed(self, name: str) -> SqliteTopic | None:
        self.close_ledger(name)
        return self._topics.get(name)

    # -- the store as a whole -----------------------------------------------------------------

    def figures(self) -> StoreFigures:
        """Return the store's contents and write statistics, for metrics."""
        figures = super().figures()
        if self._file is None:
            return figures
        return figures._replace(
            file_bytes=self._file.size_bytes,
            recent_bytes=self._recent.size_bytes,
            unwritten_bytes=self._parts.writer.unwritten_bytes,
            fetched_entries=self._parts.reads.fetched_entries,
            writing=self._parts.writer.figures,
        )


def _new_temporary(place: Path) -> Path:
    try:
        return temporary_database(place)
    except OSError as error:
        raise MessageStoreError(
            f"no temporary message database can be made in {place}: {error.strerror}; name another "
            "folder with the environment's TMPDIR, or set floodgateMessageStore=memory"
        ) from None
