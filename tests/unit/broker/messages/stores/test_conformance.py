"""Conformance tests of message stores."""

import pytest

from broker.messages.errors import MessageStoreError, MessageStoreFullError
from broker.messages.position import EARLIEST, LATEST, Position
from broker.messages.stores.managed_ledger import CursorState, ManagedLedger, MessageStore
from broker.messages.stores.room import ENTRY_COST_BYTES
from tests.support.stores.message_stores import OTHER_TOPIC, TOPIC, Noting, digest, filled


@pytest.fixture
async def ledger(store: MessageStore) -> ManagedLedger:
    return await store.open_ledger(TOPIC)


async def test_an_appended_entry_is_read_back_unchanged(ledger: ManagedLedger) -> None:
    position = ledger.append(b"bytes", digest(12, 34, 5))
    await ledger.flushed()
    entry = await ledger.entry(position)
    assert entry is not None
    assert entry.position == position
    assert entry.data == b"bytes"
    assert (entry.publish_time, entry.deliver_at, entry.message_count) == (12, 34, 5)


async def test_entries_are_confirmed_up_to_the_last_appended_entry(ledger: ManagedLedger) -> None:
    ledger.listener = noting = Noting()
    positions = await filled(ledger, 12)
    assert noting.last == positions[-1] == ledger.last_confirmed


async def test_a_full_ledger_is_closed_and_the_next_opened(ledger: ManagedLedger) -> None:
    positions = await filled(ledger, 5)
    full, empty = ledger.ledgers
    assert (full.entries, full.closed_at) == (5, 1_000)
    assert (empty.entries, empty.size_bytes, empty.closed_at) == (0, 0, 0)
    assert full.ledger_id < empty.ledger_id
    assert ledger.last_confirmed == positions[-1] == Position(full.ledger_id, 4)


async def test_ledger_ids_increase_across_all_topics(store: MessageStore) -> None:
    first = (await store.open_ledger(TOPIC)).ledgers[-1].ledger_id
    second = (await store.open_ledger(OTHER_TOPIC)).ledgers[-1].ledger_id
    (await store.open_ledger(TOPIC)).roll()
    third = (await store.open_ledger(TOPIC)).ledgers[-1].ledger_id
    assert first < second < third < store.next_id()


async def test_the_last_position_of_an_empty_topic_is_before_its_first_entry(
    ledger: ManagedLedger,
) -> None:
    (only,) = ledger.ledgers
    assert ledger.last_confirmed == Position(only.ledger_id, -1)
    assert await ledger.fetch(EARLIEST, 10, 10) == []
    assert ledger.following(EARLIEST) == Position(only.ledger_id, 0)
    assert ledger.count(EARLIEST, LATEST) == 0


async def test_after_an_unload_the_last_entry_is_in_the_previous_ledger(store) -> None:
    ledger = await store.open_ledger(TOPIC)
    positions = await filled(ledger, 3)
    store.close_ledger(TOPIC)
    again = await store.open_ledger(TOPIC)
    assert again is not ledger
    assert again.last_confirmed == positions[-1]
    assert [info.entries for info in again.ledgers] == [3, 0]
    assert again.added == (0, 0)
    assert ledger.added == (3, 21)


async def test_unloading_twice_leaves_no_empty_ledger_behind(store: MessageStore) -> None:
    await filled(await store.open_ledger(TOPIC), 1)
    for _ in range(2):
        store.close_ledger(TOPIC)
        ledger = await store.open_ledger(TOPIC)
    assert [info.entries for info in ledger.ledgers] == [1, 0]


async def test_appending_to_a_closed_ledger_is_refused(store: MessageStore) -> None:
    ledger = await store.open_ledger(TOPIC)
    store.close_ledger(TOPIC)
    with pytest.raises(MessageStoreError, match=f"the ledger of {TOPIC} is closed"):
        ledger.append(b"late", digest())


async def test_a_read_ends_at_its_bounds_and_at_the_end_of_a_ledger(ledger: ManagedLedger) -> None:
    positions = await filled(ledger, 8)
    by_entries = await ledger.fetch(positions[0], 2, 1_000)
    by_bytes = await ledger.fetch(positions[0], 10, 15)
    too_large = await ledger.fetch(positions[0], 10, 1)
    by_ledger = await ledger.fetch(positions[3], 10, 1_000)
    assert [entry.position for entry in by_entries] == positions[:2]
    assert [entry.data for entry in by_bytes] == [b"entry 0", b"entry 1"]
    assert [entry.data for entry in too_large] == [b"entry 0"]
    assert [entry.data for entry in by_ledger] == [b"entry 3", b"entry 4"]


async def test_a_read_begins_at_the_next_existing_entry(ledger: ManagedLedger) -> None:
    positions = await filled(ledger, 8)
    behind_the_ledger = await ledger.fetch(Position(positions[0].ledger_id, 99), 1, 1)
    assert behind_the_ledger[0].position == positions[5]
    assert await ledger.fetch(LATEST, 1, 1) == []


async def test_position_arithmetic_crosses_ledger_boundaries(ledger: ManagedLedger) -> None:
    positions = await filled(ledger, 12)
    first, last = positions[0], positions[-1]
    assert ledger.following(positions[4]) == positions[5]
    assert ledger.following(last) == Position(last.ledger_id, last.entry_id + 1)
    assert ledger.preceding(positions[5]) == positions[4]
    assert ledger.preceding(first) == Position(first.ledger_id, -1)
    assert ledger.preceding(LATEST) == last
    assert ledger.count(positions[2], positions[9]) == 7
    assert ledger.size_between(positions[2], positions[9]) == 49
    assert ledger.at(positions[2], 7) == positions[9]
    assert ledger.at(positions[2], 99) == last
    assert ledger.at(last, 3) == last


@pytest.mark.parametrize(
    ("time", "index"), [(0, 0), (1_000, 0), (1_001, 1), (1_070, 7), (1_110, 11), (9_999, 12)]
)
async def test_a_time_search_finds_the_first_entry_not_published_earlier_or_the_end(
    ledger, time, index
) -> None:
    positions = await filled(ledger, 12)
    end = ledger.following(positions[-1])
    assert await ledger.published_at(time) == [*positions, end][index]


async def test_an_unopened_ledger_can_be_trimmed(store: MessageStore) -> None:
    ledger = await store.open_ledger(TOPIC)
    positions = await filled(ledger, 12)
    ledger.save_cursor("s", CursorState(positions[9]))
    await ledger.flushed()
    assert await store.unopened_ledger(TOPIC) is None
    store.close_ledger(TOPIC)
    before = store.next_id()
    again = await store.unopened_ledger(TOPIC)
    assert again is not None
    assert (again.last_confirmed, again.cursors["s"].mark_delete) == (positions[11], positions[9])
    again.trim(positions[10], 0, 0)
    assert store.room.taken.entries == 2
    assert store.next_id() == before + 1


async def test_a_topic_without_entries_has_no_unopened_ledger_to_trim(store: MessageStore) -> None:
    await store.open_ledger(TOPIC)
    store.close_ledger(TOPIC)
    assert await store.unopened_ledger(TOPIC) is None
    assert await store.unopened_ledger(OTHER_TOPIC) is None


async def test_without_retention_unneeded_ledgers_except_the_open_ledger_are_dropped(store) -> None:
    ledger = await store.open_ledger(TOPIC)
    positions = await filled(ledger, 12)
    ledger.trim(positions[9], 0, 0)
    first_needed = [info.ledger_id for info in ledger.ledgers]
    ledger.trim(LATEST, 0, 0)
    assert first_needed == [positions[5].ledger_id, positions[10].ledger_id]
    assert [info.ledger_id for info in ledger.ledgers] == [positions[10].ledger_id]
    assert ledger.size_bytes == store.room.taken.data_bytes == 16
    assert await ledger.entry(positions[9]) is None


@pytest.mark.parametrize(
    ("keep_bytes", "keep_since", "left"),
    [(-1, 0, 3), (-1, 1_000, 3), (-1, 1_001, 1), (51, 0, 2), (52, 0, 3), (16, 0, 1), (17, 0, 2)],
)
async def test_retention_ends_by_size_or_by_time(ledger, keep_bytes, keep_since, left) -> None:
    await filled(ledger, 12)
    ledger.trim(LATEST, keep_bytes, keep_since)
    assert len(ledger.ledgers) == left


async def test_the_last_position_is_remembered_after_its_ledger_is_dropped(
    store: MessageStore,
) -> None:
    ledger = await store.open_ledger(TOPIC)
    positions = await filled(ledger, 5)
    ledger.truncate()
    remembered = ledger.last_confirmed
    store.close_ledger(TOPIC)
    again = await store.open_ledger(TOPIC)
    assert remembered == positions[-1]
    assert again.last_confirmed == Position(again.ledgers[0].ledger_id, -1)
    assert again.size_bytes == 0


async def test_cursors_and_properties_survive_an_unload(store: MessageStore) -> None:
    ledger = await store.open_ledger(TOPIC)
    state = CursorState(Position(1, 2), {1: b"\x05"}, {Position(1, 4): (3, -1)}, {"k": "v"})
    ledger.save_cursor("s", state)
    ledger.save_cursor("gone", state)
    ledger.delete_cursor("gone")
    ledger.set_property("epoch", "3")
    ledger.set_property("gone", "1")
    ledger.set_property("gone", None)
    await ledger.flushed()
    store.close_ledger(TOPIC)
    again = await store.open_ledger(TOPIC)
    assert dict(again.cursors) == {"s": state}
    assert dict(again.properties) == {"epoch": "3"}


async def test_a_deleted_topic_leaves_no_entries_and_no_cursors(store: MessageStore) -> None:
    ledger = await store.open_ledger(TOPIC)
    await filled(ledger, 7)
    ledger.save_cursor("s", CursorState(EARLIEST))
    await store.delete_ledger(TOPIC)
    await store.delete_ledger("persistent://t/n/never")
    assert not store.holds(TOPIC)
    assert store.room.taken.data_bytes == 0
    again = await store.open_ledger(TOPIC)
    assert await again.fetch(EARLIEST, 10, 10) == []
    assert not again.cursors
    with pytest.raises(MessageStoreError):
        ledger.append(b"late", digest())


async def test_the_open_ledger_of_a_deleted_topic_reads_as_empty(store: MessageStore) -> None:
    ledger = await store.open_ledger(TOPIC)
    positions = await filled(ledger, 12)
    await store.delete_ledger(TOPIC)
    assert [info.entries for info in ledger.ledgers] == [0]
    assert (ledger.size_bytes, ledger.count(EARLIEST, LATEST)) == (0, 0)
    assert ledger.last_confirmed == positions[-1] < ledger.following(positions[-1])
    for position in (EARLIEST, positions[0], positions[7]):
        assert ledger.read(position, 9, 99) == await ledger.fetch(position, 9, 99) == []
        assert (await ledger.entry(position), ledger.digest(position)) == (None, None)
        assert not ledger.holds(position)
    assert await ledger.published_at(0) == ledger.following(positions[-1])


async def test_an_entry_above_the_topic_bound_is_refused_until_room_is_freed(
    store: MessageStore,
) -> None:
    store.room.bounds = store.room.bounds._replace(topic=2 * (len(b"entry 0") + ENTRY_COST_BYTES))
    ledger = await store.open_ledger(TOPIC)
    await filled(ledger, 2)
    with pytest.raises(MessageStoreFullError, match="floodgateMessageStoreMaxTopicMB"):
        ledger.append(b"entry 2", digest())
    await filled(await store.open_ledger(OTHER_TOPIC), 2)
    ledger.roll()
    ledger.truncate()
    await filled(ledger, 2)
