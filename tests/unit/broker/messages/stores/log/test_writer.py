"""Group commit of the log, and what happens when the disk fails."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from broker.messages.managed_ledger import CursorState, MessageStoreError
from broker.messages.position import EARLIEST
from broker.messages.stores.log import writer
from broker.messages.stores.log.items import RETRY_SECONDS
from broker.messages.stores.log.records import ENTRY_DATA_OFFSET
from broker.messages.stores.log.segments import segment_name
from broker.messages.stores.log.writer import SYNC_SECONDS
from tests.support.stores.message_stores import (
    OTHER_TOPIC,
    TOPIC,
    Noting,
    digest,
    filled,
    log_store,
    opened,
)
from tests.support.stores.simulated_files import SimulatedFiles


async def test_what_is_appended_in_one_turn_is_one_write() -> None:
    # Given
    files = SimulatedFiles()
    async with opened(log_store(files)) as store:
        ledgers = [await store.open_ledger(name) for name in (TOPIC, OTHER_TOPIC)]
        await store.parts.writer.flushed()
        before = files.writes
        # When
        for ledger in ledgers:
            for _ in range(4):
                last = ledger.append(b"data", digest())
        unconfirmed = ledger.last_confirmed
        await ledger.flushed()
        # Then
        assert files.writes == before + 1
        assert unconfirmed < last == ledger.last_confirmed


async def test_a_slow_disk_has_one_write_in_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given: each look at the clock is a turn later
    files, clock = SimulatedFiles(), itertools.count()
    monkeypatch.setattr(writer, "perf_counter", lambda: next(clock) * writer.TURN_SECONDS)
    async with opened(log_store(files)) as store:
        ledger = await store.open_ledger(TOPIC)
        await store.parts.writer.flushed()
        before = files.writes
        # When: this makes three writes
        for _ in range(3):
            ledger.append(bytes(writer.CHUNK_BYTES * 3 // 4), digest())
        await asyncio.sleep(0)
        # Then
        assert files.writes == before + 1
        await ledger.flushed()
        assert files.writes == before + 3


async def test_an_entry_that_is_not_confirmed_is_not_read() -> None:
    # Given
    async with opened(log_store(SimulatedFiles())) as store:
        ledger = await store.open_ledger(TOPIC)
        # When
        position = ledger.append(b"data", digest())
        # Then
        assert ledger.entry(position) is None
        assert ledger.read(EARLIEST, 9, 99) == []
        assert ledger.following(EARLIEST) == position


async def test_with_fsync_nothing_is_confirmed_before_the_disk_has_it() -> None:
    # Given
    files = SimulatedFiles()
    async with opened(log_store(files, fsync=True)) as store:
        ledger = await store.open_ledger(TOPIC)
        ledger.listener = noting = Noting()
        points: list[tuple[str, bool]] = []
        files.on_reached = lambda point: points.append((point, noting.last is None))
        # When
        last = ledger.append(b"data", digest())
        await ledger.flushed()
        # Then
        assert points == [("written", True), ("synced", True)]
        assert noting.last == last


async def test_without_fsync_the_disk_is_told_a_second_later() -> None:
    # Given
    files = SimulatedFiles()
    store = log_store(files)
    async with opened(store):
        await filled(await store.open_ledger(TOPIC), 2)
        file = files.files[segment_name(1)]
        before = len(file.synced)
        # When
        store._clock.advance(SYNC_SECONDS)
        await asyncio.sleep(0)
        # Then
        assert before < len(file.synced) == len(file.content)


@pytest.mark.parametrize("fsync", [False, True])
async def test_a_full_disk_fails_what_is_not_confirmed_and_nothing_else(*, fsync: bool) -> None:
    # Given
    files = SimulatedFiles()
    async with opened(log_store(files, fsync=fsync)) as store:
        ledger = await store.open_ledger(TOPIC)
        other = await store.open_ledger(OTHER_TOPIC)
        ledger.listener, other.listener = Noting(), Noting()
        positions = await filled(ledger, 3)
        stored = store.stored_bytes
        entries_bytes = stored + 3 * ENTRY_DATA_OFFSET
        # When
        files.is_full = True
        ledger.append(b"lost", digest())
        with pytest.raises(MessageStoreError, match="No space left on device"):
            await ledger.flushed()
        # Then
        assert "cannot be written: No space left on device" in str(ledger.listener.error)
        assert other.listener.error is None
        assert store.stored_bytes == stored
        assert sum(sum(one.ledgers.values()) for one in store.parts.segments) == entries_bytes
        assert ledger.last_confirmed == positions[-1]
        with pytest.raises(MessageStoreError):
            ledger.append(b"too", digest())
        # And when there is room again
        files.is_full = False
        store.close_ledger(TOPIC)
        again = await store.open_ledger(TOPIC)
        more = await filled(again, 1)
        assert again.count(EARLIEST, more[0]) == 4
        await filled(other, 1)


async def test_a_torn_write_is_cut_off_and_no_damage_later() -> None:
    # Given
    files = SimulatedFiles()
    async with opened(log_store(files)) as store:
        ledger = await store.open_ledger(TOPIC)
        positions = await filled(ledger, 3)
        files.tear_write = files.writes + 1
        ledger.append(b"lost", digest())
        with pytest.raises(MessageStoreError, match="torn"):
            await ledger.flushed()
        store.close_ledger(TOPIC)
        positions += await filled(await store.open_ledger(TOPIC), 2, first=3)
    # When
    async with opened(log_store(files)) as store:
        # Then
        ledger = await store.open_ledger(TOPIC)
        found = [entry.data for at in positions if (entry := ledger.entry(at))]
        assert found == [b"entry %d" % number for number in range(5)]


async def test_a_cursor_whose_write_failed_is_written_again() -> None:
    # Given
    files = SimulatedFiles()
    store = log_store(files)
    async with opened(store):
        ledger = await store.open_ledger(TOPIC)
        await filled(ledger, 1)
        files.is_full = True
        ledger.save_cursor("s", CursorState(EARLIEST))
        with pytest.raises(MessageStoreError):
            await ledger.flushed()
        # When
        files.is_full = False
        store._clock.advance(RETRY_SECONDS)
        await store.parts.writer.flushed()
        left = files.after_kill()
    # Then
    async with opened(log_store(left)) as store:
        assert list((await store.open_ledger(TOPIC)).cursors) == ["s"]
