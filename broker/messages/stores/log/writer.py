"""Group commit: what is added to the log in one turn of the event loop is one write."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from time import perf_counter
from typing import TYPE_CHECKING

from broker.messages.managed_ledger import MessageStoreError
from broker.messages.stores.figures import WriteFigures
from broker.messages.stores.log.chunk import Chunk
from broker.messages.stores.log.records import OFFSET_BITS, start_record, synced_record
from broker.messages.stores.log.segments import SEGMENT_BYTES, segment_name
from broker.messages.stores.log.tail import LogTail

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker.messages.position import Position
    from broker.messages.stores.log.chunk import Writing
    from broker.messages.stores.log.files import LogFiles
    from broker.messages.stores.log.records import ItemKey
    from broker.messages.stores.log.segments import Segment, Segments
    from limiter.clock import Clock, TimerHandle

logger = logging.getLogger(__name__)

CHUNK_BYTES = 1024 * 1024
"""A write has no more, unless one record has."""
TURN_BYTES = 4 * CHUNK_BYTES
"""Bytes that are written in one turn of the event loop."""
TURN_SECONDS = 0.004
"""Seconds after which it ends as well: the system holds up who writes faster than its disk."""
SYNC_SECONDS = 1.0
"""Without fsync the disk is told to take what was written so much later."""


class LogWriter:
    """Writes the log.

    With ``fsync`` all that waits is written and synced by a thread, and then confirmed; meanwhile
    the next waits. So only what was never confirmed can be torn by a loss of power. Without it
    what was added in a turn is written at its end and confirmed.

    Args:
        files: Where the segments are.
        segments: Takes new ones.
        fsync: Confirm only what the disk has.
        clock: For syncs that nobody waits for.
    """

    def __init__(
        self,
        files: LogFiles,
        segments: Segments,
        clock: Clock,
        *,
        fsync: bool,
    ) -> None:
        self.figures = WriteFigures()
        self.tail = LogTail()
        self.unwritten_bytes = 0
        self.on_unsaved: Callable[[Sequence[ItemKey]], None] | None = None
        self.on_settled: Callable[[], None] | None = None
        self._files = files
        self._segments = segments
        self._fsync = fsync
        self._clock = clock
        self._active: Segment | None = None
        self._open_chunk: Chunk | None = None
        self._chunks: deque[Chunk] = deque()
        self._unsettled: deque[Chunk] = deque()
        self._is_due = False
        self._committing: asyncio.Future[None] | None = None
        self._syncing: asyncio.Future[None] | None = None
        self._sync_timer: TimerHandle | None = None
        self._broken: MessageStoreError | None = None
        # What the disk has of a segment, and the log does not say yet.
        self._unmarked: dict[int, Segment] = {}

    # -- adding -------------------------------------------------------------------------------

    @property
    def active(self) -> Segment | None:
        """The segment that grows; None before the first write."""
        return self._active

    def add_entry(self, topic: Writing, position: Position, head: bytes, data: bytes) -> int:
        """Add an entry's record; return its place. The topic hears when it is stored."""
        chunk, place = self._place_for(len(head) + len(data))
        chunk.parts += (head, data)
        chunk.waiting[topic] = position
        return place

    def add_item(self, key: ItemKey, record: bytes) -> int:
        """Add the record of an item's state; return its place."""
        chunk, place = self._place_for(len(record))
        chunk.parts.append(record)
        chunk.keys.append(key)
        return place

    def add_copy(self, record: bytes) -> int:
        """Add a record that stood elsewhere; return its place."""
        chunk, place = self._place_for(len(record))
        chunk.parts.append(record)
        return place

    def _place_for(self, size: int) -> tuple[Chunk, int]:
        if self._broken is not None:
            raise self._broken
        segment = self._active
        if segment is None or segment.size + size > SEGMENT_BYTES:
            segment = self._begin_segment()
        chunk = self._open_chunk
        if chunk is None or chunk.size + size > CHUNK_BYTES:
            chunk = self._begin_chunk(segment)
        place = segment.number << OFFSET_BITS | segment.size
        self._grow(chunk, size)
        return chunk, place

    def _begin_segment(self) -> Segment:
        segment = self._active = self._segments.next()
        self._begin_chunk(segment)
        return segment

    def _begin_chunk(self, segment: Segment) -> Chunk:
        chunk = self._open_chunk = Chunk(segment)
        self._chunks.append(chunk)
        self._unsettled.append(chunk)
        if not segment.size:
            self._add_own(chunk, start_record(segment.number))
        for marked in self._unmarked.values():
            # Damage before what the disk had for certain is no torn write.
            self._add_own(chunk, synced_record(marked.number, marked.synced))
        self._unmarked.clear()
        if not self._is_due and self._committing is None:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._turn_ended)
        return chunk

    def _add_own(self, chunk: Chunk, record: bytes) -> None:
        chunk.parts.append(record)
        self._grow(chunk, len(record))

    def _grow(self, chunk: Chunk, size: int) -> None:
        chunk.size += size
        chunk.segment.size += size
        self.unwritten_bytes += size

    # -- writing ------------------------------------------------------------------------------

    def _turn_ended(self) -> None:
        self._is_due = False
        if self._fsync:
            self._commit()
        else:
            self._write_turn()

    def _write_turn(self) -> None:
        """Write what waits, and confirm it; after some megabytes others have their turn."""
        left, end = TURN_BYTES, perf_counter() + TURN_SECONDS
        try:
            while self._chunks and left > 0:
                chunk = self._chunks.popleft()
                self._let_go(chunk)
                left -= chunk.size
                try:
                    self._write(chunk)
                except OSError as error:
                    self._fail(error)
                    return
                self._settle(chunk)
                if perf_counter() >= end:
                    break
        finally:
            self._sync_later()
            if self._chunks and not self._is_due:
                self._is_due = True
                asyncio.get_running_loop().call_soon(self._turn_ended)

    def _let_go(self, chunk: Chunk) -> None:
        if chunk is self._open_chunk:
            self._open_chunk = None

    def _write(self, chunk: Chunk) -> None:
        """Write a chunk; also run by a thread."""
        segment = chunk.segment
        began = perf_counter()
        if segment.file is None:
            segment.file = self._files.create(segment_name(segment.number))
        piece = b"".join(chunk.parts)
        segment.file.append(piece)
        self.figures.wrote(len(piece), perf_counter() - began)
        chunk.parts = [piece]

    def _settle(self, chunk: Chunk) -> None:
        """Tell those who wait that a chunk is stored."""
        self._unsettled.popleft()
        chunk.segment.unsettled -= 1
        self.unwritten_bytes -= chunk.size
        self.tail.add(chunk.segment.number << OFFSET_BITS | chunk.start, chunk.parts[0])
        for topic, last in chunk.waiting.items():
            topic.stored(last)
        for callback in chunk.settled:
            callback(None)
        if self.on_settled is not None and chunk.segment is not self._active:
            self.on_settled()

    # -- with fsync ---------------------------------------------------------------------------

    def _commit(self) -> None:
        """Let a thread write and sync all that waits."""
        chunks: list[Chunk] = []
        size_bytes = 0
        while self._chunks and size_bytes < TURN_BYTES:
            chunk = self._chunks.popleft()
            self._let_go(chunk)
            size_bytes += chunk.size
            chunks.append(chunk)
        loop = asyncio.get_running_loop()
        self._committing = loop.run_in_executor(self._files.executor, self._write_and_sync, chunks)
        self._committing.add_done_callback(lambda done: self._committed(chunks, done))

    def _write_and_sync(self, chunks: list[Chunk]) -> None:
        new = any(chunk.segment.file is None for chunk in chunks)
        for chunk in chunks:
            self._write(chunk)
        for segment in {chunk.segment.number: chunk.segment for chunk in chunks}.values():
            self._sync_file(segment)
        if new:
            self._files.sync()

    def _committed(self, chunks: list[Chunk], done: asyncio.Future[None]) -> None:
        self._committing = None
        error = done.exception()
        if isinstance(error, OSError):
            self._fail(error)
            return
        if error is not None:
            raise error
        for chunk in chunks:
            self._has(chunk.segment, chunk.start + chunk.size)
            self._settle(chunk)
        if self._chunks and not self._is_due:
            self._turn_ended()

    # -- syncs that nobody waits for ----------------------------------------------------------

    def _sync_later(self) -> None:
        if self._sync_timer is None and self._syncing is None and self._unsynced():
            self._sync_timer = self._clock.call_at(self._clock.now() + SYNC_SECONDS, self._sync_now)

    def _sync_now(self) -> None:
        self._sync_timer = None
        segments = self._unsynced()
        ends = [self._written(segment) for segment in segments]
        loop = asyncio.get_running_loop()
        self._syncing = loop.run_in_executor(self._files.executor, self._sync_files, segments)
        self._syncing.add_done_callback(lambda done: self._did_sync(segments, ends, done))

    def _sync_files(self, segments: Sequence[Segment]) -> None:
        for segment in segments:
            self._sync_file(segment)
        self._files.sync()

    def _sync_file(self, segment: Segment) -> None:
        if segment.file is not None:
            began = perf_counter()
            segment.file.sync()
            self.figures.synced(perf_counter() - began)

    def _did_sync(
        self, segments: Sequence[Segment], ends: Sequence[int], done: asyncio.Future[None]
    ) -> None:
        self._syncing = None
        error = done.exception()
        if error is not None:
            self.figures.failures += 1
            logger.error("the disk does not take the message log: %s", error)
            return
        for segment, end in zip(segments, ends, strict=True):
            self._has(segment, end)
        self._sync_later()

    def _has(self, segment: Segment, end: int) -> None:
        """Note up to where the disk has a segment."""
        if end > segment.synced:
            segment.synced = end
            self._unmarked[segment.number] = segment

    def _unsynced(self) -> list[Segment]:
        return [one for one in self._segments if one.synced < self._written(one)]

    def _written(self, segment: Segment) -> int:
        waiting = sum(chunk.size for chunk in self._unsettled if chunk.segment is segment)
        return segment.size - waiting

    # -- waiting ------------------------------------------------------------------------------

    async def flushed(self) -> None:
        """Return once all that was added is stored.

        Raises:
            MessageStoreError: It failed.
        """
        if self._unsettled:
            done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._unsettled[-1].settled.append(lambda error: _finish(done, error))
            await done
        elif self._broken is not None:
            raise self._broken

    async def synced(self) -> None:
        """Return once the disk has all that was added.

        Raises:
            MessageStoreError: It failed.
        """
        await self.flushed()
        while self._unsynced():
            if self._syncing is None:
                if self._sync_timer is not None:
                    self._sync_timer.cancel()
                self._sync_now()
            syncing, failures = self._syncing, self.figures.failures
            if syncing is not None:
                # The callback that notes the result was added before, and has run then.
                await asyncio.wait([syncing])
            if self.figures.failures > failures:
                raise MessageStoreError("the disk does not take the message log")

    async def close(self) -> None:
        """Write and sync what waits, and write down that the disk has it."""
        try:
            await self.synced()
            if self._active is not None and self._unmarked:
                self._begin_chunk(self._active)
                await self.flushed()
        except MessageStoreError as error:
            logger.error("the message log could not be written to its end: %s", error)
        if self._sync_timer is not None:
            self._sync_timer.cancel()
        if self._syncing is not None:
            await asyncio.wait([self._syncing])
        self._broken = self._broken or MessageStoreError("the message log is closed")

    # -- failures -----------------------------------------------------------------------------

    def _fail(self, error: OSError) -> None:
        """Give up all that is not confirmed."""
        self.figures.failures += 1
        reason = MessageStoreError(f"the message log cannot be written: {error.strerror or error}")
        logger.error("%s", reason)
        lost = list(self._unsettled)
        self._unsettled.clear()
        self._chunks.clear()
        self._open_chunk = self._active = None
        for chunk in lost:
            chunk.segment.unsettled -= 1
            self.unwritten_bytes -= chunk.size
        for topic in {topic: None for chunk in lost for topic in chunk.waiting}:
            topic.not_stored(reason)
        if self.on_unsaved is not None:
            self.on_unsaved([key for chunk in lost for key in chunk.keys])
        # Of each segment the first chunk that is lost, and with it all behind.
        for chunk in {chunk.segment.number: chunk for chunk in reversed(lost)}.values():
            self._cut(chunk.segment, chunk.start)
        for chunk in lost:
            for callback in chunk.settled:
                callback(reason)

    def _cut(self, segment: Segment, size: int) -> None:
        """Cut off what a failed write left behind, so that it is not taken for damage later."""
        segment.size = size
        if segment.file is None:
            self._segments.remove(segment)
            return
        try:
            segment.file.truncate(size)
        except OSError as error:
            self._broken = MessageStoreError(
                f"the message log cannot be mended before a restart: {error.strerror or error}"
            )
            logger.error("%s", self._broken)


def _finish(done: asyncio.Future[None], error: MessageStoreError | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)
