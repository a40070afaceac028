"""The writer of a message database: one transaction per event-loop turn, on its own thread."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from queue import Empty, SimpleQueue
from threading import Thread
from time import perf_counter
from typing import TYPE_CHECKING

from broker.messages.errors import MessageStoreError
from broker.messages.stores.room import WriteFigures
from broker.messages.stores.sqlite.batch import Batch
from broker.messages.stores.sqlite.database import is_damage, is_locked
from proto.excerpts import one_line

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable

    from broker.messages.position import Position
    from broker.messages.stores.sqlite.batch import DroppedLedger, Writing
    from broker.messages.stores.sqlite.database import DatabaseFile
    from broker.messages.stores.sqlite.sqlite_ledger import RecentEntries, SqliteLedger
    from limiter.clock import Clock, TimerHandle

logger = logging.getLogger(__name__)

ENTRIES_A_TRANSACTION = 2_000
BYTES_A_TRANSACTION = 1024 * 1024
"""The most entries and bytes of a transaction: one loop turn can confirm them, and they fit into
the disk reserve."""
RETRY_SECONDS = 0.5
"""The delay in seconds before a held-up transaction is retried."""


class DatabaseWriter:
    """A writer that stores batches one by one; writes made meanwhile form the next batch.

    A full disk holds up the current batch and all later entries until space is free: no entry is
    confirmed or lost. Meanwhile the writer stores cursors and deletes dropped ledgers, for which
    entries have left a reserve of disk space. A database lock of another process holds up all
    writes. Any other error ends all writing until the broker restarts.

    Bound: publishing limits the unconfirmed entries (maxPendingPublishRequests...,
    maxMessagePublishBufferSizeInMB); of each cursor or property only the newest version waits.

    Args:
        file: The database.
        connection: The writing connection; closed at the end.
        recent: Receives the stored entries.
        clock: The clock that times retries on a full disk.
        dropped: Ledgers with entries still to be deleted.
        on_full: Called at each attempt on a full disk, to drop unneeded messages.

    Attributes:
        figures: The write statistics.
        held_up_by: The reason why writing is held up; None if it is not.
    """

    def __init__(
        self,
        file: DatabaseFile,
        connection: sqlite3.Connection,
        recent: RecentEntries,
        clock: Clock,
        dropped: Iterable[DroppedLedger],
        on_full: Callable[[], object] = lambda: None,
    ) -> None:
        self.figures = WriteFigures()
        self.held_up_by: MessageStoreError | None = None
        self._file = file
        self._connection = connection
        self._recent = recent
        self._clock = clock
        self._on_full = on_full
        self._loop = asyncio.get_running_loop()
        self._next = Batch()
        self._before: deque[Batch] = deque()
        self._written: Batch | None = None
        # Writes stored ahead of entries waiting for disk space.
        self._ahead = Batch()
        self._is_due = False
        self._retry: TimerHandle | None = None
        self._error: MessageStoreError | None = None
        self._closing: asyncio.Future[None] | None = None
        self._jobs: SimpleQueue[Batch | None] = SimpleQueue()
        self._dropped = deque(dropped)
        self._thread = Thread(target=self._run, name="message-database", daemon=True)
        self._thread.start()

    # -- on the event loop --------------------------------------------------------------------

    def batch(self) -> Batch:
        """Return the batch that collects the writes of the current event-loop turn.

        Raises:
            MessageStoreError: The writer has failed or is closed.
        """
        if self._error is not None:
            raise self._error
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._turn_ended)
        entries, size_bytes = len(self._next.entries), self._next.size_bytes
        if entries >= ENTRIES_A_TRANSACTION or size_bytes >= BYTES_A_TRANSACTION:
            self._before.append(self._next)
            self._next.seal()
            self._next = Batch()
        return self._next

    def drop(self, ledger: SqliteLedger, batch: Batch) -> None:
        """Delete a ledger's entries from memory now, and from the database in later steps."""
        self._recent.forget(ledger)
        if len(ledger):
            batch.drop(ledger)

    @property
    def unwritten_bytes(self) -> int:
        """The total bytes of the entries that wait to be stored."""
        return sum(batch.size_bytes for batch in self._unwritten)

    @property
    def _unwritten(self) -> list[Batch]:
        first = () if self._written is None else (self._ahead, self._written)
        return [*first, *self._before, self._next]

    def _turn_ended(self) -> None:
        self._is_due = False
        if self._written is None:
            self._hand_over()

    def _hand_over(self) -> None:
        if not self._before and self._next:
            self._before.append(self._next)
            self._next.seal()
            self._next = Batch()
        if self._before:
            self._written = self._before.popleft()
            self._jobs.put(self._written)
            return
        if self._closing is not None and not self._closing.done():
            # Closed before the waiters below are notified, because a waiter may add writes.
            self._error = MessageStoreError("the message store is closed")
            self._closing.set_result(None)
        for waiter in self._next.waiting:
            _settle(waiter, None)
        self._next.waiting.clear()

    async def flushed(self) -> None:
        """Wait until all previous writes are stored.

        Raises:
            MessageStoreError: The disk is full, or the writer failed.
        """
        batch = self.batch()
        if self.held_up_by is not None:
            raise self.held_up_by
        waiter: asyncio.Future[None] = self._loop.create_future()
        batch.waiting.append(waiter)
        await waiter

    def _done(self, batch: Batch, error: Exception | None, seconds: float) -> None:
        if error is None and batch is self._ahead:
            self.figures.wrote(0, seconds)
            self._ahead = Batch()
            self._jobs.put(self._written)
            return
        if error is None:
            self._stored(batch, seconds)
            return
        self.figures.failures += 1
        if self._file.has_no_room(error):
            if self._closing is None:
                self._tell(self._on_full)
            self._hold_up(
                batch,
                f"there is no room for the message database {self._file.path}; free some room on "
                "its disk: pending messages are stored then",
            )
        elif is_locked(error):
            self._hold_up(
                batch,
                f"another process has locked the message database {self._file.path}; end it: "
                "pending messages are stored then",
            )
        else:
            self._fail(error)

    def _stored(self, batch: Batch, seconds: float) -> None:
        self.figures.wrote(batch.size_bytes, seconds)
        if self.held_up_by is not None:
            self.held_up_by = None
            logger.warning("the message database %s is written again", self._file.path)
        for ledger, (entries, size_bytes) in batch.added.items():
            ledger.confirm(entries, size_bytes)
            self._recent.add(ledger, entries, size_bytes)
        self._written = None
        # Start the next transaction, then confirm the current.
        self._hand_over()
        for topic, last in batch.last.items():
            self._tell(topic.stored, last)
        for waiter in batch.waiting:
            _settle(waiter, None)

    def _tell(self, hears: Callable[..., object], *what: object) -> None:
        try:
            hears(*what)
        except Exception:
            logger.exception("a callback of the message database %s failed", self._file.path)

    def _hold_up(self, batch: Batch, reason: str) -> None:
        """Stop writing until a later retry of the batch, and log the reason.

        While closing, only the writes that need no waiting entries are tried, and only once.
        """
        error = MessageStoreError(reason)
        if self.held_up_by is None:
            logger.warning("%s", error)
        self.held_up_by = error
        for waiting in self._unwritten:
            for waiter in waiting.waiting:
                _settle(waiter, error)
            waiting.waiting.clear()
        if self._closing is None:
            self._retry = self._clock.call_at(self._clock.now() + RETRY_SECONDS, self._write_again)
        elif batch is not self._ahead and self._goes_ahead():
            self._jobs.put(self._ahead)
        else:
            self._give_up(error)

    def _write_again(self) -> None:
        """Retry the failed batch, after executing the statements that free disk space."""
        self._retry = None
        self._jobs.put(self._ahead if self._goes_ahead() else self._written)

    def _goes_ahead(self) -> bool:
        """Collect the writes that need no waiting entries; return True if there are any."""
        assert self._written is not None  # Held up, therefore not None.
        if self._written.entries:
            batches = self._unwritten
            growing = {ledger.ledger_id for batch in batches for ledger in batch.added}
            for batch in batches[1:]:
                self._ahead.take_states(batch, growing)
        return bool(self._ahead)

    def _fail(self, error: Exception) -> None:
        text = one_line(str(error) or type(error).__name__)
        reason = f"the message database {self._file.path} cannot be written: {text}"
        self._error = MessageStoreError(f"{reason}; fix that, then restart the broker")
        logger.error("%s", self._error)
        self._give_up(self._error)

    def _give_up(self, error: MessageStoreError) -> None:
        """Report a failure of writing to all topics and callers that wait for writes."""
        self._error = self._error or error
        batches = self._unwritten
        self._written, self._ahead, self._next = None, Batch(), Batch()
        self._before.clear()
        topics: dict[Writing, Position] = {}
        for batch in batches:
            topics |= batch.last
            for waiter in batch.waiting:
                _settle(waiter, error)
        for topic in topics:
            self._tell(topic.not_stored, error)
        if self._closing is not None and not self._closing.done():
            self._closing.set_result(None)

    async def close(self) -> None:
        """Write pending batches, and stop the thread; give up batches that cannot be written."""
        self._closing = self._loop.create_future()
        if self._error is not None:
            self._closing.set_result(None)
        elif self._retry is not None:
            self._retry.cancel()
            self._write_again()
        elif self._written is None:
            self._hand_over()
        await self._closing
        self._jobs.put(None)
        await asyncio.to_thread(self._thread.join)

    # -- on the thread ------------------------------------------------------------------------

    def _run(self) -> None:
        may_delete = True
        while True:
            try:
                batch = self._jobs.get(block=not (self._dropped and may_delete))
            except Empty:
                may_delete = self._delete_some()
                continue
            if batch is None:
                break
            error = self._write(batch)
            may_delete = self._delete_some() if error is None or self.held_up_by else False
        self._connection.close()

    def _write(self, batch: Batch) -> Exception | None:
        begun = perf_counter()
        error: Exception | None = None
        try:
            if self._file.is_nearly_full(batch.size_bytes):
                self._file.check_room(self._connection, batch.page_bytes)
            batch.write(self._connection)
        except Exception as failure:  # noqa: BLE001 - whatever it is, the event loop hears of it
            error = failure
        else:
            self._dropped.extend(batch.dropped)
        self._loop.call_soon_threadsafe(self._done, batch, error, perf_counter() - begun)
        return error

    def _delete_some(self) -> bool:
        """Delete some entries of a dropped ledger; return False if deletion fails for now."""
        if not self._dropped:
            return True
        try:
            if self._file.is_nearly_full(0):
                self._file.check_room(self._connection, 0)
            if self._dropped[0].delete_some(self._connection):
                self._dropped.popleft()
        except Exception as error:  # noqa: BLE001 - whatever it is, others are written
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            if self.held_up_by is None:  # Otherwise already logged.
                logger.warning("dropped entries stay in %s: %s", self._file.path, error)
            if is_damage(error):
                self._dropped.clear()  # The next start tries again.
            return False
        return True


def _settle(waiter: asyncio.Future[None], error: MessageStoreError | None) -> None:
    if waiter.done():
        return
    if error is None:
        waiter.set_result(None)
    else:
        waiter.set_exception(error)
