"""A log that is opened again: after a torn write, and with damage."""

from __future__ import annotations

import asyncio
import logging

import pytest

from broker.messages.managed_ledger import CursorState, MessageStoreError
from broker.messages.position import EARLIEST, LATEST, Position
from broker.messages.stores.log import cleaner, records
from broker.messages.stores.log.segments import segment_name
from broker.messages.stores.log.states import TopicState, topic_bytes
from tests.support.stores.message_stores import (
    OTHER_TOPIC,
    TOPIC,
    digest,
    filled,
    log_store,
    opened,
)
from tests.support.stores.simulated_files import SimulatedFiles

FIRST = segment_name(1)


async def written(entries: int = 8) -> tuple[SimulatedFiles, list[Position]]:
    """A log with a topic of some entries, closed as it should be."""
    files = SimulatedFiles()
    async with opened(log_store(files)) as store:
        ledger = await store.open_ledger(TOPIC)
        ledger.save_cursor("s", CursorState(EARLIEST))
        ledger.set_property("epoch", "1")
        positions = await filled(ledger, entries)
        await filled(await store.open_ledger(OTHER_TOPIC), 1)
    return files, positions


async def test_everything_is_there_after_a_restart() -> None:
    # Given
    files, positions = await written()
    # When
    async with opened(log_store(files)) as store:
        ledger = await store.open_ledger(TOPIC)
        # Then
        assert ledger.last_confirmed == positions[-1]
        assert [info.entries for info in ledger.ledgers] == [5, 3, 0]
        assert ledger.ledgers[-1].ledger_id > positions[-1].ledger_id
        assert ledger.entry(positions[6]).data == b"entry 6"
        assert ledger.entry(positions[6]).publish_time == 1_060
        assert list(ledger.cursors) == ["s"]
        assert dict(ledger.properties) == {"epoch": "1"}
        assert store.stored_bytes == 9 * 7


async def test_a_torn_end_is_cut_with_one_line(caplog) -> None:
    # Given
    files = SimulatedFiles()
    async with opened(log_store(files)) as store:
        positions = await filled(await store.open_ledger(TOPIC), 3)
        left = files.after_kill()
    left.files[FIRST].content = left.files[FIRST].content[:-3]
    # When
    with caplog.at_level(logging.WARNING):
        async with opened(log_store(left)) as store:
            ledger = await store.open_ledger(TOPIC)
            # Then
            assert ledger.last_confirmed == positions[1]
            await filled(ledger, 1)
        async with opened(log_store(left)) as store:
            assert (await store.open_ledger(TOPIC)).count(EARLIEST, LATEST) == 3
    assert len(caplog.records) == 1
    assert "cut off behind the last whole record of segment 1" in caplog.text


async def test_damage_before_the_end_refuses_the_start_and_says_what_is_lost() -> None:
    # Given
    files, positions = await written()
    content = files.files[FIRST].content
    content[content.index(b"entry 6")] ^= 1
    # When
    with pytest.raises(MessageStoreError) as refused:
        await log_store(files).open()
    # Then
    sentence = str(refused.value)
    assert "segment 1 has" in sentence
    assert f"{TOPIC} loses 1 entries from {positions[6]} on" in sentence
    assert OTHER_TOPIC not in sentence
    assert "floodgateMessageStoreDropDamaged" in sentence


@pytest.mark.parametrize("is_used", [False, True])
async def test_what_is_damaged_is_dropped_when_asked_and_only_once(
    caplog, monkeypatch, *, is_used: bool
) -> None:
    # Given: a segment that is copied for its damage alone.
    monkeypatch.setattr(cleaner, "NEARLY_DEAD_BYTES", -1)
    files, positions = await written()
    async with opened(log_store(files)) as store:
        await store.open_ledger(TOPIC)
    content = files.files[FIRST].content
    content[content.index(b"entry 6")] ^= 1
    # When
    async with opened(log_store(files, drop_damaged=True)) as store:
        if is_used:
            assert (await store.open_ledger(TOPIC)).last_confirmed == positions[5]
        while store.parts.cleaner.candidate() is not None:
            store.parts.cleaner.wake()
            await asyncio.sleep(0)
    # Then
    assert f"dropped: {TOPIC} loses" in caplog.text
    assert FIRST not in files.names()
    async with opened(log_store(files)) as store:
        ledger = await store.open_ledger(TOPIC)
        assert ledger.last_confirmed == positions[5]
        assert len((await store.open_ledger(OTHER_TOPIC)).read(EARLIEST, 5, 50)) == 1


async def test_an_entry_that_is_damaged_later_is_not_handed_out() -> None:
    # Given
    files, positions = await written()
    async with opened(log_store(files)) as store:
        ledger = await store.open_ledger(TOPIC)
        # When
        content = files.files[FIRST].content
        content[content.index(b"entry 6")] ^= 1
        # Then
        with pytest.raises(MessageStoreError, match=f"entry {positions[6]} is damaged"):
            ledger.entry(positions[6])
        assert ledger.entry(positions[5]) is not None


async def test_a_segment_that_somebody_deleted_is_missed() -> None:
    # Given
    files, _ = await written()
    async with opened(log_store(files)) as store:
        await filled(await store.open_ledger(TOPIC), 2)
    # When
    del files.files[FIRST]
    # Then
    with pytest.raises(MessageStoreError, match="is damaged"):
        await log_store(files).open()


async def test_a_log_of_another_format_is_refused() -> None:
    # Given
    files, _ = await written()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "FORMAT_VERSION", 2)
        files.files[FIRST].content[:] = records.start_record(1)
    # Then
    with pytest.raises(MessageStoreError, match="has format 2, and this version reads format 1"):
        await log_store(files).open()


async def test_ids_are_never_given_again() -> None:
    # Given
    files = SimulatedFiles()
    async with opened(log_store(files)) as store:
        given = [store.next_id() for _ in range(1_500)]
        await store.parts.writer.flushed()
    # When
    async with opened(log_store(files)) as store:
        ledger = await store.open_ledger(TOPIC)
        # Then
        assert store.next_id() > given[-1]
        assert ledger.last_confirmed > Position(given[-1], 0)


async def test_what_was_never_confirmed_stays_away_though_the_disk_brings_it_back() -> None:
    # Given: a sync fails, what was written is cut off, and the topic goes on in another ledger.
    files = SimulatedFiles()
    async with opened(log_store(files, fsync=True)) as store:
        ledger = await store.open_ledger(TOPIC)
        await filled(ledger, 2)
        contents: list[bytes] = []
        files.on_reached = lambda _: contents.append(bytes(files.files[FIRST].content))
        files.fails_to_sync = True
        ledger.append(b"lost", digest())
        with pytest.raises(MessageStoreError, match="not synced"):
            await ledger.flushed()
        files.on_reached, files.fails_to_sync = None, False
        store.close_ledger(TOPIC)
        await filled(await store.open_ledger(TOPIC), 1, first=2)
    # When: the cut itself is lost with the power.
    files.files[FIRST].content[:] = contents[0]
    async with opened(log_store(files)) as store:
        ledger = await store.open_ledger(TOPIC)
        # Then
        assert [info.entries for info in ledger.ledgers] == [2, 1, 0]
        assert store.stored_bytes == 3 * 7


def log_of(*items: tuple[records.ItemKey, bytes]) -> SimulatedFiles:
    """A log with these states and nothing else."""
    files = SimulatedFiles()
    file = files.create(FIRST)
    file.append(records.start_record(1))
    for key, value in items:
        file.append(records.item_record(key, value))
    return files


ONE = records.ItemKey(1, records.TOPIC, "")
TWO = records.ItemKey(2, records.TOPIC, "")
OPEN_LEDGER = topic_bytes(TopicState(TOPIC, [(3, 0, 0)]))


@pytest.mark.parametrize(
    "items",
    [
        [(ONE, b"[]")],
        [(ONE, OPEN_LEDGER), (records.ItemKey(1, records.CURSOR, "s"), b"x")],
        [(ONE, OPEN_LEDGER), (TWO, OPEN_LEDGER)],
        [(ONE, OPEN_LEDGER), (TWO, topic_bytes(TopicState(OTHER_TOPIC, [(3, 0, 0)])))],
    ],
    ids=["a topic", "a cursor", "a topic twice", "a ledger of two topics"],
)
async def test_a_state_that_cannot_be_read_is_damage(items, caplog) -> None:
    # Given
    files = log_of(*items)
    # When
    with pytest.raises(MessageStoreError, match="damaged"):
        await log_store(files).open()
    with caplog.at_level(logging.ERROR):
        async with opened(log_store(files, drop_damaged=True)) as store:
            names = store.names()
    # Then
    assert list(names) == ([TOPIC] if len(items) > 1 else [])
    assert "dropped" in caplog.text


async def test_what_is_dropped_with_an_unreadable_state_is_written_again_readably() -> None:
    # Given
    files = log_of((ONE, OPEN_LEDGER), (records.ItemKey(1, records.CURSOR, "s"), b"x"))
    async with opened(log_store(files, drop_damaged=True)) as store:
        (await store.open_ledger(TOPIC)).save_cursor("s", CursorState(EARLIEST))
    # When
    async with opened(log_store(files)) as store:
        cursors = (await store.open_ledger(TOPIC)).cursors
    # Then
    assert list(cursors) == ["s"]


@pytest.mark.parametrize("name", ["segment-1.bak", "segment-", "segment--00000000001", "segment-1"])
async def test_a_file_of_another_name_is_left_alone(name: str) -> None:
    # Given
    files, positions = await written()
    files.create(name).append(b"something")
    # When
    async with opened(log_store(files)) as store:
        ledger = await store.open_ledger(TOPIC)
    # Then
    assert ledger.last_confirmed == positions[-1]
    assert files.open(name).content == b"something"


async def test_no_id_that_left_anything_is_given_again() -> None:
    # Given: the record of the ids that were given is lost, and the topic of ledger 70 is gone
    files = log_of((ONE, OPEN_LEDGER))
    files.open(FIRST).append(records.entry_record(70, 0, b"x", digest(0)) + b"x")
    # When
    async with opened(log_store(files)) as store:
        # Then
        assert store.next_id() > 70
