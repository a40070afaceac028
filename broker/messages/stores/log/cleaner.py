"""Deletes segments in which nothing lives; what little lives in others is copied forward."""

from __future__ import annotations

import asyncio
import logging
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from broker.messages.managed_ledger import MessageStoreError
from broker.messages.stores.log.records import (
    ENTRY_DATA_OFFSET,
    OFFSET_BITS,
    OFFSET_MASK,
    body_at,
)
from broker.messages.stores.log.segments import SEGMENT_BYTES, segment_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from broker.messages.stores.log.files import LogFile, LogFiles
    from broker.messages.stores.log.items import Items
    from broker.messages.stores.log.log_ledger import LogLedger
    from broker.messages.stores.log.records import ItemKey
    from broker.messages.stores.log.segments import Segment, Segments
    from broker.messages.stores.log.writer import LogWriter

logger = logging.getLogger(__name__)

NEARLY_DEAD_BYTES = SEGMENT_BYTES // 4
"""A segment in which no more lives is copied and deleted: three bytes are won for one copied."""
STEP_BYTES = 256 * 1024
"""Bytes that are copied in one turn of the event loop."""
STEP_ITEMS = 200
STEP_SECONDS = 0.002
"""Seconds for which entries are looked for in one turn."""


class Move(NamedTuple):
    """An entry that is copied."""

    ledger: LogLedger
    number: int
    place: int
    size: int


class Cleaner:
    """Deletes segments, one at a time, oldest or emptiest first.

    A segment goes only when the disk has all that replaces it.
    """

    def __init__(
        self,
        files: LogFiles,
        segments: Segments,
        writer: LogWriter,
        items: Items,
    ) -> None:
        self.deleted_segments = 0
        self.copied_bytes = 0
        self._files = files
        self._segments = segments
        self._writer = writer
        self._items = items
        self._something_died = asyncio.Event()
        self._unreadable: set[int] = set()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, with what can be deleted already."""
        self._something_died.set()
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Stop; what was copied in part is copied again another time."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def wake(self) -> None:
        """Look for segments to delete: something is no longer needed."""
        self._something_died.set()

    async def _run(self) -> None:
        while True:
            await self._something_died.wait()
            self._something_died.clear()
            while (segment := self.candidate()) is not None:
                try:
                    await self._clean(segment)
                except (MessageStoreError, OSError) as error:
                    logger.warning("segment %d is kept: %s", segment.number, error)
                    break

    def candidate(self) -> Segment | None:
        """Return the segment to be cleaned next."""
        usable = (
            segment
            for segment in self._segments
            if segment is not self._writer.active
            and not segment.unsettled
            and segment.number not in self._unreadable
            and (segment.live <= NEARLY_DEAD_BYTES or segment.damaged)
        )
        return min(usable, key=lambda segment: segment.live, default=None)

    async def _clean(self, segment: Segment) -> None:
        for step in self._steps(segment):
            raw = await self._read(segment, step)
            moved = self._copy(step, raw)
            await self._writer.flushed()
            self._adopt(moved)
        for keys in self._item_steps(segment):
            for key in keys:
                if self._items.is_needed(key, segment.number):
                    self._items.save(key)
                else:
                    self._items.forget(key)
            await self._writer.flushed()
        await self._writer.synced()
        if segment.ledgers or segment.items:
            self._unreadable.add(segment.number)
            raise MessageStoreError(f"{segment.live} bytes of it cannot be read")
        self._segments.remove(segment)
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._files.executor, self._delete, segment)
        except OSError:
            # Its file is there: what it says of deleted items must go on counting.
            self._segments.add(segment)
            raise
        self.deleted_segments += 1

    def _delete(self, segment: Segment) -> None:
        if segment.file is not None:
            self._files.unlink(segment_name(segment.number))
            segment.file.close()

    # -- entries ------------------------------------------------------------------------------

    def _steps(self, segment: Segment) -> Iterator[list[Move]]:
        """Yield the entries that are copied together."""
        step: list[Move] = []
        size_bytes = 0
        end = perf_counter() + STEP_SECONDS
        for ledger in list(segment.ledgers):
            if perf_counter() > end:
                # Of thousands of ledgers each may have one entry here.
                yield step
                step, size_bytes, end = [], 0, perf_counter() + STEP_SECONDS
            for number in ledger.numbers_in(segment.number):
                size = ENTRY_DATA_OFFSET + ledger.size(number)
                step.append(Move(ledger, number, ledger.places[number], size))
                size_bytes += size
                if size_bytes >= STEP_BYTES:
                    yield step
                    step, size_bytes = [], 0
        if step:
            yield step

    async def _read(self, segment: Segment, step: Sequence[Move]) -> list[bytes]:
        loop = asyncio.get_running_loop()
        if segment.file is None:
            return []
        return await loop.run_in_executor(self._files.executor, _records, segment.file, step)

    def _copy(self, step: Sequence[Move], raw: Sequence[bytes]) -> list[Move]:
        """Add the records that are still needed behind all others."""
        moved = []
        for move, record in zip(step, raw, strict=True):
            old = move.place >> OFFSET_BITS
            if old in move.ledger.segments and body_at(record, 0) is not None:
                moved.append(move._replace(place=self._writer.add_copy(record)))
                self.copied_bytes += len(record)
        return moved

    def _adopt(self, moved: Sequence[Move]) -> None:
        """Let ledgers that are still there read from the copies."""
        for ledger, number, place, size in moved:
            old = ledger.places[number] >> OFFSET_BITS
            if old in ledger.segments:
                data_bytes = size - ENTRY_DATA_OFFSET
                self._segments.entries_added(ledger, place >> OFFSET_BITS, 1, data_bytes)
                ledger.places[number] = place
                self._segments.entries_gone(ledger, old, 1, data_bytes)

    @staticmethod
    def _item_steps(segment: Segment) -> Iterator[list[ItemKey]]:
        while segment.items:
            yield list(segment.items)[:STEP_ITEMS]


def _records(file: LogFile, step: Sequence[Move]) -> list[bytes]:
    try:
        return [file.pread(move.size, move.place & OFFSET_MASK) for move in step]
    except OSError as error:
        raise MessageStoreError(error.strerror or str(error)) from None
