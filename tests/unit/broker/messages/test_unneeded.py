"""Space freed of messages needed by no subscription."""

from dataclasses import replace

import pytest

from broker.messages.monitors import TopicMonitors
from broker.messages.position import LATEST
from broker.messages.stores.room import ENTRY_COST_BYTES
from broker.messages.topic import PersistentTopic
from broker.policies.effective import DEFAULTS, Retention
from proto.names import TopicName
from tests.support.clocks.settle import settle
from tests.support.messages.producing import add, entry_bytes, publish
from tests.unit.broker.messages.loading.test_loaded_topics import NAME, NAMESPACE, Loaded

OTHER = TopicName.parse(f"{NAME}-other")
MESSAGE = len(entry_bytes(producer_name="p1")) + ENTRY_COST_BYTES


class Full(Loaded):
    """Topics in a store with capacity for ten messages."""

    def __init__(self, **keys: str) -> None:
        super().__init__(**keys)
        self.store.now_ms = self.clock.wall_ms
        self.store.room.bounds = self.store.room.bounds._replace(process=10 * MESSAGE)

    async def published(self, name: TopicName, messages: int) -> PersistentTopic:
        """Return a topic with a subscription that has a backlog."""
        await self.names.create_namespace(NAMESPACE)
        topic = await self.topics.get(name)
        if not len(topic.subscriptions):
            topic.subscriptions.create("s")
        if not topic.producers:
            self.cnx = self.connection()
            add(topic, self.cnx.producer())
        (made,) = topic.producers
        for number in range(messages):
            publish(topic, made, number)
        await settle()
        return topic

    @property
    def messages(self) -> int:
        return self.store.room.taken.entries


def acknowledge_all(topic: PersistentTopic) -> None:
    for subscription in topic.subscriptions:
        subscription.skip_through(LATEST)


async def test_entries_acknowledged_in_a_topic_make_room_for_another_topic() -> None:
    full = Full()
    acknowledge_all(await full.published(NAME, 8))
    topic = await full.published(OTHER, 9)
    assert (full.messages, full.store.room.refused) == (9, 0)
    assert not topic.full


async def test_consumed_topics_pass_twenty_times_the_bound_without_refusal() -> None:
    full = Full()
    names = [TopicName.parse(f"{NAME}-{number}") for number in range(10)]
    for _ in range(40):
        for name in names:
            acknowledge_all(await full.published(name, 5))
        assert full.messages <= 10
    assert full.store.room.refused == 0


async def test_needed_and_retained_entries_stay_and_new_messages_are_refused() -> None:
    full = Full()
    await full.published(NAME, 8)
    topic = await full.published(OTHER, 3)
    assert topic.full
    full.policies = replace(DEFAULTS, retention=Retention(-1, -1))
    kept = Full()
    kept.policies = full.policies
    acknowledge_all(await kept.published(NAME, 8))
    assert (await kept.published(OTHER, 3)).full
    assert (full.messages, kept.messages) == (10, 10)


async def test_a_refusal_names_the_key_to_raise() -> None:
    full = Full()
    topic = await full.published(NAME, 11)
    with pytest.raises(Exception, match="floodgateMessageStoreMaxMB allows; raise it"):
        topic.check_room()


async def test_an_unloaded_topic_gives_up_unneeded_entries() -> None:
    full = Full()
    acknowledge_all(await full.published(NAME, 8))
    await full.topics.unload(NAME)
    assert full.messages == 8
    await full.published(OTHER, 2)
    assert full.messages == 2
    assert (await full.published(OTHER, 8)).ledger.size_bytes > 0
    assert full.store.room.refused == 0


async def test_an_unloaded_topic_keeps_the_backlog_of_its_subscription() -> None:
    full = Full()
    await full.published(NAME, 8)
    await full.topics.unload(NAME)
    assert (await full.published(OTHER, 3)).full
    assert full.messages == 10
    subscription = (await full.published(NAME, 0)).subscriptions.get("s")
    assert subscription is not None
    assert subscription.cursor.backlog == 8


async def test_checking_an_unloaded_topic_takes_no_ledger_number() -> None:
    full = Full()
    await full.published(NAME, 8)
    await full.topics.unload(NAME)
    await full.published(OTHER, 2)
    before = full.store.next_id()
    for _ in range(5):
        full.clock.advance(60)
        await full.published(OTHER, 1)
    assert full.store.next_id() == before + 1


async def test_unneeded_entries_are_freed_before_the_last_room_is_taken() -> None:
    full = Full()
    acknowledge_all(await full.published(NAME, 9))
    await full.published(OTHER, 1)
    assert full.messages == 1


async def test_an_unneeded_open_ledger_is_dropped_after_some_minutes() -> None:
    full = Full()
    monitors = TopicMonitors(full.topics, full.deletion, full.topics._parts.config.publishing)
    topic = await full.published(NAME, 5)
    acknowledge_all(topic)
    await monitors.trim()
    read_back = await topic.ledger.fetch(topic.ledger.preceding(LATEST), 1, 1)
    assert (full.messages, len(read_back)) == (5, 1)
    full.clock.advance(601)
    await monitors.trim()
    assert full.messages == 0
    await full.published(NAME, 2)
    full.clock.advance(601)
    await monitors.trim()
    assert full.messages == 2
