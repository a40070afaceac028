"""A topic's compaction, and consumers reading the compacted view."""

import asyncio
from dataclasses import replace

import pytest

import proto.PulsarApi_pb2 as pb
from broker.errors import Refusal, RefusedError
from broker.messages.compaction.compactor import UNUSED_PROPERTY, Compactor
from broker.messages.compaction.topic_compaction import (
    SUBSCRIPTION,
    CompactionStatus,
    delete_compacted,
)
from broker.messages.entry import Entry
from broker.messages.errors import MessageStoreError
from broker.messages.metadata import parse_metadata
from broker.messages.position import EARLIEST, Position
from broker.messages.stores.memory import MemoryMessageStore
from broker.messages.stores.room import StoreBounds
from broker.messages.subscriptions.consumer import Consumer, ConsumerOptions
from broker.policies.effective import DEFAULTS
from tests.support.clocks.settle import settle
from tests.support.subscriptions.messages import message, single
from tests.support.subscriptions.recording_client import RecordingClient
from tests.support.subscriptions.stored_topic import StoredTopic

EXCLUSIVE = pb.CommandSubscribe.Exclusive


def payloads(client: RecordingClient) -> list[bytes]:
    return [data[4 + int.from_bytes(data[:4], "big") :] for data in client.messages]


async def reading(
    topic: StoredTopic, name: str = "reader", permits: int = 1_000
) -> tuple[RecordingClient, Consumer]:
    """Return a client reading the compacted view from the subscription's position."""
    client = RecordingClient()
    subscription = topic.subscriptions.get(name)
    if subscription is None:
        subscription = topic.subscriptions.create(name, earliest=True)
    options = ConsumerOptions(1, "c", EXCLUSIVE, read_compacted=True)
    consumer = subscription.add_consumer(client, options)
    subscription.flow(consumer, permits)
    await settle()
    return client, consumer


async def stored(*, entries_per_ledger: int = 50_000) -> StoredTopic:
    """Return a topic with five messages: two keys, and messages without a key."""
    topic = await StoredTopic.loaded(MemoryMessageStore(max_entries_per_ledger=entries_per_ledger))
    for payload, key in ((b"a1", "a"), (b"b1", "b"), (b"none", None), (b"a2", "a"), (b"b2", "b")):
        topic.publish(payload, key)
    return topic


@pytest.fixture
async def topic() -> StoredTopic:
    topic = await stored()
    await topic.compact()
    return topic


async def test_a_reader_gets_the_last_message_of_each_key_and_then_all_new_messages(topic) -> None:
    client, _ = await reading(topic)
    topic.publish(b"new without key")
    topic.publish(b"a3", "a")
    await settle()
    assert payloads(client) == [b"a2", b"b2", b"new without key", b"a3"]
    assert topic.compaction.status is CompactionStatus.SUCCESS
    assert topic.compaction.removed == 3


async def test_a_reader_does_not_get_a_compacted_message_without_key() -> None:
    topic = await stored()
    topic.publish(b"last without key")
    await topic.compact()
    client, _ = await reading(topic)
    topic.publish(b"new without key")
    await settle()
    assert payloads(client) == [b"a2", b"b2", b"new without key"]


async def test_the_last_message_is_the_last_retained_entry_until_a_newer_message() -> None:
    topic = await stored()
    topic.publish(b"", "b")
    await topic.compact()
    last = await topic.compaction.last_entry()
    assert topic.compaction.holds_last()
    assert last is not None
    assert last.position.entry_id == 3
    topic.publish(b"a3", "a")
    assert not topic.compaction.holds_last()


async def test_the_last_message_is_a_retained_entry_after_newer_entries_are_dropped(topic) -> None:
    topic.publish(b"new without key")
    topic.ledger.roll()
    topic.ledger.truncate()
    assert topic.compaction.holds_last()


async def test_the_last_message_is_looked_up_again_after_a_simultaneous_compaction(topic) -> None:
    deleted = topic.compaction.compacted
    topic.publish(b"a3", "a")
    await topic.compact()
    left = topic.compaction.compacted
    assert deleted is not None
    look = deleted.last_entry

    async def meanwhile() -> Entry | None:
        topic.compaction.compacted = left
        return await look()

    deleted.last_entry = meanwhile  # type: ignore[method-assign]
    topic.compaction.compacted = deleted
    last = await topic.compaction.last_entry()
    assert last is not None
    assert last.position.entry_id == 5


async def test_messages_published_during_a_compaction_are_not_compacted() -> None:
    topic = await stored()
    topic.compaction.start()
    await asyncio.sleep(0)
    # The first pass has read, the second has not.
    topic.publish(b"a3", "a")
    await topic.compaction.finished()
    client, _ = await reading(topic)
    assert topic.compaction.status is CompactionStatus.SUCCESS
    assert payloads(client) == [b"a2", b"b2", b"a3"]


async def test_a_consumer_without_read_compacted_gets_every_message(topic: StoredTopic) -> None:
    client = RecordingClient()
    subscription = topic.subscriptions.create("s", earliest=True)
    subscription.flow(subscription.add_consumer(client, ConsumerOptions(1, "c", EXCLUSIVE)), 1_000)
    await settle()
    assert len(client.messages) == 5


async def test_a_reader_continues_in_the_compacted_view_after_a_compaction() -> None:
    topic = await stored()
    client, consumer = await reading(topic, permits=1)
    await topic.compact()
    consumer.subscription.flow(consumer, 100)
    await settle()
    assert payloads(client) == [b"a1", b"a2", b"b2"]


async def test_a_compaction_builds_on_the_entries_retained_by_the_previous_run(topic) -> None:
    topic.publish(b"a3", "a")
    topic.publish(b"", "b")
    topic.publish(b"c1", "c")
    await topic.compact()
    client, _ = await reading(topic)
    assert payloads(client) == [b"a3", b"c1"]
    assert len([name for name in topic.store._topics if name.startswith("compacted")]) == 1


async def test_compacted_entries_are_readable_after_the_ledgers_of_the_topic_are_gone() -> None:
    topic = await stored(entries_per_ledger=2)
    await topic.compact()
    topic.ledger.roll()
    topic.subscriptions.moved()
    client, consumer = await reading(topic)
    assert sum(info.entries for info in topic.ledger.ledgers) == 0
    assert payloads(client) == [b"a2", b"b2"]
    # The client acknowledges a removed entry, then the first retained entry, and reconnects.
    found = topic.compaction.compacted
    assert found is not None
    first = (await found.fetch(Position(0, 0), 1, 1))[0].position
    subscription = consumer.subscription
    before = subscription.cursor.mark_delete
    subscription.acknowledge_cumulatively(consumer, pb.MessageIdData(ledgerId=0, entryId=0))
    assert subscription.cursor.mark_delete == before
    subscription.acknowledge_cumulatively(
        consumer, pb.MessageIdData(ledgerId=first.ledger_id, entryId=first.entry_id)
    )
    subscription.remove_consumer(consumer)
    again, _ = await reading(topic)
    assert payloads(again) == [b"b2"]


async def test_an_acknowledgement_of_an_unknown_entry_does_not_move_the_cursor(
    topic: StoredTopic,
) -> None:
    _, consumer = await reading(topic)
    before = consumer.subscription.cursor.mark_delete
    consumer.subscription.acknowledge_cumulatively(
        consumer, pb.MessageIdData(ledgerId=before.ledger_id, entryId=99)
    )
    assert consumer.subscription.cursor.mark_delete == before


async def test_redelivery_starts_again_with_the_retained_entries(topic: StoredTopic) -> None:
    client, consumer = await reading(topic)
    consumer.subscription.redeliver(consumer, [], None)
    await settle()
    assert payloads(client) == [b"a2", b"b2"] * 2


async def test_a_partly_retained_batch_takes_permits_for_all_its_messages() -> None:
    topic = await StoredTopic.loaded(MemoryMessageStore())
    batch = single(b"1", partition_key="a") + single(b"2", partition_key="a") + single(b"3")
    topic.append(message(batch, count=3))
    await topic.compact()
    client, consumer = await reading(topic, permits=10)
    assert list(parse_metadata(client.messages[0]).compacted_batch_indexes) == [1]
    assert consumer.permits == 7
    assert topic.compaction.removed == 2
    # A second compaction does not count earlier removals again.
    await topic.compact()
    assert topic.compaction.removed == 0


async def test_the_compaction_subscription_is_at_the_end_without_backlog(
    topic: StoredTopic,
) -> None:
    subscription = topic.subscriptions.get(SUBSCRIPTION)
    assert subscription is not None
    assert subscription.cursor.mark_delete == topic.ledger.last_confirmed
    assert subscription.cursor.backlog == 0


async def test_a_threshold_keeps_entries_for_a_later_compaction() -> None:
    topic = await stored(entries_per_ledger=2)
    topic.subscriptions.create("full")
    topic.policies = replace(DEFAULTS, compaction_threshold_bytes=1_000_000, max_subscriptions=1)
    topic.compaction.keep_for_later()
    topic.compaction.keep_for_later()
    topic.subscriptions.moved()
    subscription = topic.subscriptions.get(SUBSCRIPTION)
    assert subscription is not None
    assert subscription.cursor.backlog == 5
    assert topic.subscriptions.slowest == topic.ledger.following(EARLIEST)


async def test_without_a_threshold_no_compaction_subscription_is_created() -> None:
    topic = await stored()
    topic.compaction.keep_for_later()
    assert SUBSCRIPTION not in topic.subscriptions


async def test_an_empty_topic_can_be_compacted() -> None:
    topic = await StoredTopic.loaded(MemoryMessageStore())
    await topic.compact()
    client, _ = await reading(topic)
    topic.publish(b"first")
    await settle()
    assert topic.compaction.status is CompactionStatus.SUCCESS
    assert payloads(client) == [b"first"]


async def test_a_second_compaction_is_refused_while_the_first_is_running() -> None:
    topic = await stored()
    topic.compaction.start()
    with pytest.raises(RefusedError, match="Compaction already in progress") as refused:
        topic.compaction.start()
    assert refused.value.refusal is Refusal.CONFLICT
    assert topic.compaction.status is CompactionStatus.RUNNING
    await topic.compaction.finished()


async def test_an_unload_keeps_the_compacted_entries_and_resets_the_status(
    topic: StoredTopic,
) -> None:
    await topic.unload()
    still_open = list(topic.store._open)
    again = await StoredTopic.loaded(topic.store)
    client, _ = await reading(again)
    assert still_open == []
    assert again.compaction.status is CompactionStatus.NOT_RUN
    assert payloads(client) == [b"a2", b"b2"]


async def test_a_compaction_interrupted_by_an_unload_leaves_no_ledger_behind() -> None:
    topic = await stored()
    topic.compaction.start()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await topic.unload()
    again = await StoredTopic.loaded(topic.store)
    assert again.compaction.compacted is None
    assert list(topic.store._topics) == ["persistent://t/n/x"]
    await again.compact()
    assert again.compaction.status is CompactionStatus.SUCCESS


async def test_an_unused_compacted_ledger_of_a_crash_is_deleted_by_the_next_load() -> None:
    topic = await stored()
    await topic.store.open_ledger("compacted://t/n/x-77")
    topic.ledger.set_property(UNUSED_PROPERTY, "compacted://t/n/x-77")
    await topic.unload()
    again = await StoredTopic.loaded(topic.store)
    assert list(topic.store._topics) == ["persistent://t/n/x"]
    assert UNUSED_PROPERTY not in again.ledger.properties


async def test_a_full_store_fails_the_compaction_and_changes_nothing() -> None:
    topic = await StoredTopic.loaded(MemoryMessageStore(StoreBounds(process=5_000)))
    for number in range(10):
        topic.publish(b"x" * 200, f"k{number}")
    topic.publish(b"x" * 1_000, "k10")
    await topic.compact()
    compaction = topic.compaction
    assert compaction.status is CompactionStatus.ERROR
    assert compaction.last_error
    assert compaction.failed_at > 0
    assert compaction.compacted is None
    assert list(topic.store._topics) == ["persistent://t/n/x"]
    client, _ = await reading(topic)
    assert len(client.messages) == 11


async def test_an_unexpected_error_fails_the_compaction_but_not_the_unload(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def is_faulty(*_: object) -> None:
        raise ValueError("a fault of the compactor")

    topic = await stored()
    monkeypatch.setattr(Compactor, "compact", is_faulty)
    await topic.compact()
    assert topic.compaction.status is CompactionStatus.ERROR
    assert topic.compaction.last_error == "a fault of the compactor"
    assert "persistent://t/n/x was not compacted" in caplog.text
    await topic.unload()


async def test_too_many_subscriptions_fail_the_compaction() -> None:
    topic = await stored()
    topic.subscriptions.create("s")
    topic.policies = replace(DEFAULTS, max_subscriptions=1)
    await topic.compact()
    assert topic.compaction.status is CompactionStatus.ERROR
    assert "Exceed the maximum number of subscriptions" in topic.compaction.last_error


async def test_entries_dropped_during_a_compaction_fail_the_compaction() -> None:
    topic = await stored(entries_per_ledger=2)
    topic.compaction.start()
    for _ in range(4):
        await asyncio.sleep(0)
    topic.ledger.truncate()
    await topic.compaction.finished()
    assert topic.compaction.status is CompactionStatus.ERROR
    assert "dropped meanwhile" in topic.compaction.last_error


@pytest.mark.parametrize(
    ("threshold", "starts"), [(0, False), (10, True), (1_000_000, False)], ids=str
)
async def test_the_threshold_policy_starts_a_compaction_when_exceeded(threshold, starts) -> None:
    topic = await stored()
    topic.policies = replace(DEFAULTS, compaction_threshold_bytes=threshold)
    started = topic.compaction.start_if_due()
    await topic.compaction.finished()
    assert started is starts
    assert not topic.compaction.start_if_due()


async def test_deleting_a_topic_deletes_its_compacted_ledgers(topic: StoredTopic) -> None:
    topic.ledger.set_property(UNUSED_PROPERTY, "compacted://t/n/x-77")
    await topic.store.open_ledger("compacted://t/n/x-77")
    await delete_compacted(topic.store, "persistent://t/n/x")
    assert list(topic.store._topics) == ["persistent://t/n/x"]
    await delete_compacted(topic.store, "persistent://t/n/unknown")
    assert list(topic.store._topics) == ["persistent://t/n/x"]


@pytest.mark.parametrize("turns", [None, 0, 1, 3, 10])
async def test_deleting_the_compaction_subscription_deletes_compacted_entries(
    turns: int | None,
) -> None:
    topic = await stored()
    await topic.compact()
    topic.publish(b"a3", "a")
    if turns is not None:  # The next compaction is running.
        topic.compaction.start()
        for _ in range(turns):
            await asyncio.sleep(0)
    await reading(topic)
    topic.subscriptions.get(SUBSCRIPTION).delete()  # type: ignore[union-attr]
    assert topic.compaction.compacted is None
    await topic.unload()
    assert list(topic.store._topics) == ["persistent://t/n/x"]
    again = await StoredTopic.loaded(topic.store)
    assert again.compaction.compacted is None
    await again.compact()
    assert again.compaction.status is CompactionStatus.SUCCESS


async def test_ledgers_not_deleted_with_the_subscription_are_deleted_by_a_later_load(
    topic: StoredTopic, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await topic.store.open_ledger("compacted://t/n/x-77")
    topic.ledger.set_property(UNUSED_PROPERTY, "compacted://t/n/x-77")
    with monkeypatch.context() as broken:
        broken.setattr(topic.store, "delete_ledger", fails)
        topic.subscriptions.get(SUBSCRIPTION).delete()  # type: ignore[union-attr]
        await topic.unload()
        assert "are not deleted: the disk is gone" in caplog.text
        await (await StoredTopic.loaded(topic.store)).unload()  # Loading succeeds nevertheless.
        assert len(topic.store.names()) == 3
    await StoredTopic.loaded(topic.store)
    assert topic.store.names() == ["persistent://t/n/x"]


async def fails(*_: object) -> None:
    raise MessageStoreError("the disk is gone")


async def test_leftovers_of_a_failed_compaction_are_deleted_by_the_next_compaction(
    topic: StoredTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic.publish(b"a3", "a")
    with monkeypatch.context() as broken:
        broken.setattr(topic.store, "delete_ledger", fails)
        broken.setattr(Compactor, "_copy", fails)
        await topic.compact()
    assert topic.compaction.last_error == "the disk is gone"
    assert len(topic.store.names()) == 3
    await topic.compact()
    assert topic.compaction.status is CompactionStatus.SUCCESS
    assert len(topic.store.names()) == 2
    client, _ = await reading(topic)
    assert payloads(client) == [b"b2", b"a3"]


async def test_after_a_compaction_fails_to_store_its_end_the_next_leaves_no_stale_ledger(
    topic: StoredTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic.publish(b"a3", "a")
    with monkeypatch.context() as broken:
        broken.setattr(topic.ledger, "flushed", fails)
        await topic.compact()
    assert topic.compaction.last_error == "the disk is gone"
    client, _ = await reading(topic)
    assert payloads(client) == [b"b2", b"a3"]
    await topic.compact()
    assert topic.compaction.status is CompactionStatus.SUCCESS
    assert len(topic.store.names()) == 2


async def test_a_reader_with_the_reserved_subscription_name_fails_the_compaction() -> None:
    topic = await stored()
    reader = topic.subscriptions.create(SUBSCRIPTION, earliest=True, durable=False)
    consumer = reader.add_consumer(RecordingClient(), ConsumerOptions(1, "c", EXCLUSIVE))
    await topic.compact()
    assert topic.compaction.status is CompactionStatus.ERROR
    reader.remove_consumer(consumer)
    await topic.compact()
    assert topic.compaction.status is CompactionStatus.SUCCESS
