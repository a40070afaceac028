"""Messages in a log of files: they are there after a restart."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from copy import copy
from typing import TYPE_CHECKING, NamedTuple

from broker.messages.managed_ledger import CursorState, MessageStoreError
from broker.messages.stores.figures import room_figures
from broker.messages.stores.ledger_row import LedgerRow
from broker.messages.stores.log.cleaner import Cleaner
from broker.messages.stores.log.files import identity_of
from broker.messages.stores.log.items import Items
from broker.messages.stores.log.log_ledger import LogLedger
from broker.messages.stores.log.managed_ledger import LogManagedLedger, LogTopic
from broker.messages.stores.log.parts import LogParts
from broker.messages.stores.log.reader import LogReader
from broker.messages.stores.log.records import CURSOR, IDS, PROPERTY, TOPIC, ItemKey
from broker.messages.stores.log.recovery import Recovery
from broker.messages.stores.log.states import (
    TopicState,
    cursor_bytes,
    topic_bytes,
)
from broker.messages.stores.log.writer import LogWriter
from broker.messages.stores.memory import MAX_ENTRIES_PER_LEDGER, wall_clock_ms
from broker.messages.stores.room import NO_BOUNDS, StoreRoom

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker.messages.managed_ledger import ManagedLedger
    from broker.messages.stores.figures import StoreFigures
    from broker.messages.stores.log.files import LogFiles
    from broker.messages.stores.log.recovery import Found, FoundTopic
    from broker.messages.stores.log.states import State
    from broker.messages.stores.room import StoreBounds
    from limiter.clock import Clock

IDS_AT_ONCE = 1_000
"""Ids are reserved in the log so many at a time; a restart leaves a gap."""

_IDS_KEY = ItemKey(0, IDS, "")


class LogOptions(NamedTuple):
    """The ways in which a log can be kept.

    Attributes:
        fsync: Confirm only what the disk has.
        drop_damaged: Start without what cannot be read.
        max_entries_per_ledger: A ledger with so many is closed, and the next opened.
    """

    fsync: bool = False
    drop_damaged: bool = False
    max_entries_per_ledger: int = MAX_ENTRIES_PER_LEDGER


NO_OPTIONS = LogOptions()


class LogMessageStore:
    """Keeps messages and cursors in a log (``floodgateMessageStore=log:///path``).

    Args:
        files: The directory of the log.
        clock: For syncs and retries.
        bounds: Most bytes a topic, a namespace and all together may take.
        options: How it is kept.
        now_ms: The time in ms since 1970.
    """

    def __init__(
        self,
        files: LogFiles,
        clock: Clock,
        bounds: StoreBounds = NO_BOUNDS,
        options: LogOptions = NO_OPTIONS,
        now_ms: Callable[[], int] = wall_clock_ms,
    ) -> None:
        self.identity = ""
        self.room = StoreRoom(bounds)
        self._files = files
        self._clock = clock
        self._options = options
        self._now_ms = now_ms
        self._is_open = False
        self._topics: dict[str, LogTopic] = {}
        self._by_id: dict[int, LogTopic] = {}
        self._open: dict[str, LogManagedLedger] = {}
        self._next_id = 1
        self._reserved = 1

    # -- opening ------------------------------------------------------------------------------

    async def open(self) -> None:
        """Lock the log, and recover what it holds.

        Raises:
            MessageStoreError: It is another broker's, damaged, or cannot be read.
        """
        loop = asyncio.get_running_loop()
        recovery = Recovery(self._files)
        try:
            self._files.lock()
            self.identity = identity_of(self._files)
            run = loop.run_in_executor(
                self._files.executor, lambda: recovery.run(drop_damaged=self._options.drop_damaged)
            )
            self._take_over(await run)
        except OSError as error:
            recovery.close()
            self._files.release()
            raise MessageStoreError(
                f"the message log {self._files} cannot be read: {error.strerror or error}"
            ) from None
        except MessageStoreError:
            recovery.close()
            self._files.release()
            raise
        self._is_open = True
        self.parts.cleaner.start()

    def _take_over(self, found: Found) -> None:
        segments = found.segments
        writer = LogWriter(self._files, segments, self._clock, fsync=self._options.fsync)
        items = Items(segments, writer, self._value_of, self._clock)
        cleaner = Cleaner(self._files, segments, writer, items)
        writer.on_unsaved, writer.on_settled = items.unsaved, cleaner.wake
        self.parts = LogParts(
            segments=segments,
            writer=writer,
            reader=LogReader(segments, writer.tail),
            items=items,
            cleaner=cleaner,
            next_id=self.next_id,
            now_ms=self._now_ms,
            max_entries_per_ledger=self._options.max_entries_per_ledger,
        )
        for topic in found.topics:
            self._add_found(topic)
        for key, (segment, size, _) in found.items.items():
            items.found(key, segment, size)
        for key, state in found.states.items():
            self._take_state(key, state)
        self._next_id = self._reserved = max(self._reserved, found.highest_id + 1)
        for topic in found.topics:
            if topic.lost:
                items.save(topic.key)

    def _add_found(self, found: FoundTopic) -> None:
        row: LedgerRow[LogLedger] = LedgerRow([])
        topic = LogTopic(found.name, found.key.topic_id, row, self.room.of_topic(found.name))
        for ledger in found.ledgers:
            row.add(ledger)
            topic.room.charge(len(ledger), ledger.bytes_before(len(ledger)))
            self._reserved = max(self._reserved, ledger.ledger_id + 1)
        self._reserved = max(self._reserved, topic.topic_id + 1)
        row.look_for_last()
        self._topics[found.name] = self._by_id[topic.topic_id] = topic

    def _take_state(self, key: ItemKey, state: State) -> None:
        topic = self._by_id.get(key.topic_id)
        if isinstance(state, int):
            self._reserved = max(self._reserved, state)
        elif topic is not None and isinstance(state, CursorState):
            topic.cursors[key.name] = state
        elif topic is not None and isinstance(state, str):
            topic.properties[key.name] = state

    async def close(self) -> None:
        """Write what waits, and release the files."""
        if not self._is_open:
            return
        self._is_open = False
        for ledger in self._open.values():
            ledger.close("the message store is closed")
        self._open.clear()
        await self.parts.cleaner.close()
        self.parts.items.close()
        await self.parts.writer.close()
        for segment in self.parts.segments:
            if segment.file is not None:
                segment.file.close()
        self._files.release()

    # -- topics -------------------------------------------------------------------------------

    def names(self) -> Sequence[str]:
        """Return the topics of which anything is stored."""
        return list(self._topics)

    def next_id(self) -> int:
        """Return a number that was never given before."""
        if self._next_id >= self._reserved:
            self._reserved = self._next_id + IDS_AT_ONCE
            self.parts.items.save(_IDS_KEY)
        self._next_id += 1
        return self._next_id - 1

    async def open_ledger(self, name: str) -> ManagedLedger:
        """Return the ledger of a topic, empty at first; the same one until it is closed.

        Raises:
            MessageStoreError: Nothing more can be written.
        """
        if name not in self._open:
            # What is on its way belongs to the opening before this one.
            with suppress(MessageStoreError):
                await self.parts.writer.flushed()
        found = self._open.get(name)
        return found if found is not None else self._open_now(name)

    def _open_now(self, name: str) -> LogManagedLedger:
        topic = self._topics.get(name)
        if topic is None:
            topic = self._new_topic(name)
            ledger = LogManagedLedger(topic, self.parts)
        else:
            ledger = LogManagedLedger(topic, self.parts)
            ledger.roll()
            topic.row.look_for_last()
        self._open[name] = ledger
        return ledger

    def _new_topic(self, name: str) -> LogTopic:
        topic_id = self.next_id()
        row = LedgerRow([LogLedger(self.next_id())])
        topic = LogTopic(name, topic_id, row, self.room.of_topic(name))
        self._by_id[topic_id] = topic
        self.parts.items.save(topic.key)
        self._topics[name] = topic
        return topic

    def close_ledger(self, name: str) -> None:
        """Take no more for a topic, and keep what is stored; it opens with a new ledger."""
        ledger = self._open.pop(name, None)
        if ledger is not None:
            ledger.close(f"the ledger of {name} is closed")

    async def delete_ledger(self, name: str) -> None:
        """Delete the messages and cursors of a topic; nothing happens if there are none.

        Raises:
            MessageStoreError: That could not be written, and is tried again.
        """
        self.close_ledger(name)
        with suppress(MessageStoreError):
            await self.parts.writer.flushed()
        self.close_ledger(name)
        topic = self._topics.pop(name, None)
        if topic is not None:
            self._forget(topic)
            await self.parts.writer.flushed()

    def _forget(self, topic: LogTopic) -> None:
        items, segments = self.parts.items, self.parts.segments
        del self._by_id[topic.topic_id]
        topic.room.leave()
        for ledger in topic.row:
            segments.ledger_gone(ledger)
        # Without the topic they mean nothing, and need no deletions of their own.
        for name in topic.cursors:
            items.forget(ItemKey(topic.topic_id, CURSOR, name))
        for name in topic.properties:
            items.forget(ItemKey(topic.topic_id, PROPERTY, name))
        items.save(topic.key)
        self.parts.cleaner.wake()

    def _value_of(self, key: ItemKey) -> bytes | None:
        """Return an item's state as it is now."""
        if key.kind == IDS:
            return str(self._reserved).encode()
        topic = self._by_id.get(key.topic_id)
        if topic is None:
            return None
        if key.kind == TOPIC:
            ledgers = [
                (ledger.ledger_id, ledger.closed_at, len(ledger) if ledger.closed_at else 0)
                for ledger in topic.row
            ]
            return topic_bytes(TopicState(topic.name, ledgers))
        if key.kind == CURSOR:
            cursor = topic.cursors.get(key.name)
            return None if cursor is None else cursor_bytes(cursor)
        value = topic.properties.get(key.name)
        return None if value is None else value.encode()

    # -- the store as a whole -----------------------------------------------------------------

    def holds(self, name: str) -> bool:
        """Tell whether anything is stored for a topic."""
        return name in self._topics

    @property
    def stored_bytes(self) -> int:
        """Bytes of all entries that are stored."""
        return self.room.taken.data_bytes

    def figures(self) -> StoreFigures:
        """Return what it holds and has written, for metrics."""
        parts = self.parts
        return room_figures(self.room)._replace(
            file_bytes=parts.segments.size_bytes,
            files=len(parts.segments),
            unwritten_bytes=parts.writer.unwritten_bytes,
            deleted_files=parts.cleaner.deleted_segments,
            copied_bytes=parts.cleaner.copied_bytes,
            writing=copy(parts.writer.figures),
        )

    @property
    def on_full(self) -> Callable[[str], None] | None:
        """Called with a topic's name when an append was refused for want of room."""
        return self.room.on_full

    @on_full.setter
    def on_full(self, callback: Callable[[str], None] | None) -> None:
        self.room.on_full = callback
