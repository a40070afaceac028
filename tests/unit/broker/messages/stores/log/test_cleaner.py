"""Segments in which little lives go, and what lives in them does not."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING

import pytest

from broker.messages.managed_ledger import CursorState
from broker.messages.position import EARLIEST, LATEST, Position
from broker.messages.stores.log.segments import segment_name
from tests.support.clocks.settle import settle
from tests.support.stores.message_stores import (
    OTHER_TOPIC,
    TOPIC,
    digest,
    filled,
    log_store,
    opened,
    small_segments,
)
from tests.support.stores.simulated_files import SimulatedFiles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.messages.stores.log.store import LogMessageStore

SEGMENT = 4_000


@pytest.fixture(autouse=True)
def segments_of_few_entries() -> Iterator[None]:
    yield from small_segments(SEGMENT)


async def cleaned(store: LogMessageStore) -> None:
    """Wait until nothing can be deleted."""
    while store.parts.cleaner.candidate() is not None:
        store.parts.cleaner.wake()
        await asyncio.sleep(0)


async def test_a_segment_goes_when_nothing_in_it_lives() -> None:
    # Given
    files = SimulatedFiles()
    async with opened(log_store(files)) as store:
        ledger = await store.open_ledger(TOPIC)
        await filled(ledger, 500)
        many = len(files.names())
        # When
        ledger.trim(LATEST, 0, 0)
        await cleaned(store)
        # Then
        assert many > 10
        assert len(files.names()) <= 2


async def test_one_slow_subscription_does_not_keep_the_files_of_others() -> None:
    # Given: each segment has one entry of a slow topic, and many of a quick one.
    files = SimulatedFiles()
    async with opened(log_store(files)) as store:
        slow, quick = await store.open_ledger(TOPIC), await store.open_ledger(OTHER_TOPIC)
        for number in range(20):
            await filled(slow, 1, first=number)
            await filled(quick, 30)
        many = len(files.names())
        # When
        quick.trim(LATEST, 0, 0)
        await cleaned(store)
        # Then
        assert many > 10
        assert len(files.names()) <= 3
        assert [entry.data for entry in everything(slow)] == [b"entry %d" % n for n in range(20)]
    async with opened(log_store(files)) as store:
        slow = await store.open_ledger(TOPIC)
        assert [entry.data for entry in everything(slow)] == [b"entry %d" % n for n in range(20)]


async def test_a_deleted_cursor_does_not_come_back_from_an_older_segment() -> None:
    # Given: an old segment with a cursor and enough that lives, then the deletion and dead entries.
    files = SimulatedFiles()
    async with opened(log_store(files)) as store:
        kept = await store.open_ledger(TOPIC)
        kept.save_cursor("s", CursorState(EARLIEST))
        kept.append(bytes(SEGMENT // 2), digest())
        await kept.flushed()
        dead = await store.open_ledger(OTHER_TOPIC)
        kept.delete_cursor("s")
        await filled(dead, 100)
        # When
        dead.trim(LATEST, 0, 0)
        await cleaned(store)
        assert "segment-000000000001" in files.names()
        await filled(dead, 100)
        dead.trim(LATEST, 0, 0)
        await cleaned(store)
    # Then
    async with opened(log_store(files)) as store:
        assert not (await store.open_ledger(TOPIC)).cursors


async def test_a_segment_goes_only_when_the_disk_has_what_replaces_it() -> None:
    # Given: without fsync, so that only old entries are on the disk for certain.
    files = SimulatedFiles()
    async with opened(log_store(files)) as store:
        kept, dead = await store.open_ledger(TOPIC), await store.open_ledger(OTHER_TOPIC)
        for number in range(10):
            await filled(kept, 1, first=number)
            await filled(dead, 30)
        await store.parts.writer.synced()
        dead.trim(LATEST, 0, 0)
        await cleaned(store)
        # When
        left = files.after_power_loss(NothingMore())
    # Then
    async with opened(log_store(left)) as store:
        kept = await store.open_ledger(TOPIC)
        assert [entry.data for entry in everything(kept)] == [b"entry %d" % n for n in range(10)]


async def test_a_file_that_cannot_be_deleted_is_tried_again() -> None:
    # Given
    files = SimulatedFiles()
    async with opened(log_store(files)) as store:
        ledger = await store.open_ledger(TOPIC)
        await filled(ledger, 500)
        files.fails_to_unlink = True
        # When
        ledger.trim(LATEST, 0, 0)
        await settle()
        known = {segment_name(one.number) for one in store.parts.segments}
        assert known == {name for name in files.names() if name.startswith("segment-")}
        files.fails_to_unlink = False
        await cleaned(store)
        # Then
        assert len(files.names()) <= 2


async def test_a_ledger_may_go_while_it_is_copied() -> None:
    # Given
    files = SimulatedFiles()
    async with opened(log_store(files)) as store:
        copied, dead = await store.open_ledger(TOPIC), await store.open_ledger(OTHER_TOPIC)
        await filled(copied, 8)
        await filled(dead, 200)
        copied.roll()
        await copied.flushed()
        # When
        cleaner = store.parts.cleaner
        files.on_reached = lambda _: copied.truncate() if cleaner.copied_bytes else None
        dead.trim(LATEST, 0, 0)
        await cleaned(store)
        files.on_reached = None
        await cleaned(store)
        # Then
        assert sum(segment.live for segment in store.parts.segments) == sum(
            sum(segment.items.values()) + sum(segment.ledgers.values())
            for segment in store.parts.segments
        )
        assert not any(segment.ledgers for segment in store.parts.segments)


class NothingMore(Random):
    """Of what was not synced the disk has nothing."""

    def random(self) -> float:
        """Let the directory be as it is now."""
        return 0.1

    def randint(self, a: int, b: int) -> int:
        """Keep no byte."""
        return a


def everything(ledger):
    """All entries of a topic."""
    return [
        entry
        for info in ledger.ledgers
        for entry in ledger.read(Position(info.ledger_id, 0), 1_000, 1_000_000)
        if entry.ledger_id == info.ledger_id
    ]
