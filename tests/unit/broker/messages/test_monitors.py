"""Periodic checks of loaded topics."""

from dataclasses import replace
from unittest.mock import patch

import pytest

import proto.PulsarApi_pb2 as pb
from broker.configuration.config import BrokerConfig
from broker.messages.compaction.topic_compaction import SUBSCRIPTION
from broker.messages.deduplication import CURSOR
from broker.messages.monitors import TopicMonitors
from broker.messages.position import EARLIEST
from broker.messages.subscriptions.consumer import ConsumerOptions
from broker.messages.topic import PersistentTopic
from broker.policies.effective import (
    DEFAULTS,
    BacklogQuota,
    DeleteMode,
    EffectivePolicies,
    InactiveTopics,
    Retention,
)
from broker.stores.changes import TopicChanges
from proto.names import TopicName
from tests.support.clocks.settle import settle
from tests.support.messages.producing import add, publish
from tests.support.subscriptions.recording_client import RecordingClient
from tests.unit.broker.messages.loading.test_loaded_topics import NAME, NAMESPACE, Loaded


class Watched(Loaded):
    """Loaded topics with monitors."""

    def __init__(self, policies: EffectivePolicies = DEFAULTS, **keys: str) -> None:
        super().__init__(**keys)
        self.policies = policies
        self.config = BrokerConfig.from_properties(keys).publishing
        self.monitors = TopicMonitors(self.topics, self.deletion, self.config)

    async def topic(self) -> PersistentTopic:
        topic = await super().topic()
        topic.policies = self.policies
        return topic

    async def persistent(self) -> set[str]:
        """Return the names of the persistent topics."""
        snapshot = await self.names.snapshot(NAMESPACE)
        assert snapshot is not None
        return {name.decode() for block in snapshot.persistent.blocks() for name in block.names()}

    async def after(self, seconds: float) -> None:
        """Advance time in steps, giving monitors a chance to run."""
        for _ in range(round(seconds)):
            self.clock.advance(1.0)
            await settle()


async def publishing(watched: Watched, messages: int = 3) -> PersistentTopic:
    topic, _ = await watched.produced(messages)
    await settle()
    return topic


async def test_an_interval_changed_at_run_time_applies_from_the_next_check() -> None:
    watched, checks = Watched(), list[int]()

    async def check() -> None:
        checks.append(1)

    with patch.object(watched.monitors, "delete_unused", check):
        watched.monitors.start()
        await settle()
        await watched.after(61)
        assert len(checks) == 1
        keys = {"brokerDeleteInactiveTopicsFrequencySeconds": "5"}
        watched.config.become(BrokerConfig.from_properties(keys).publishing)
        await watched.after(60 + 11)
    await watched.monitors.close()
    assert len(checks) == 1 + 1 + 2


async def test_rates_are_averaged_over_the_last_minute() -> None:
    watched = Watched()
    watched.monitors.start()
    await settle()
    topic = await publishing(watched, 120)
    await watched.after(60)
    assert topic.statistics.message_rate == 2.0
    assert topic.statistics.average_size == topic.statistics.size_bytes / 120
    (producer,) = topic.producers
    assert producer.statistics.message_rate == 2.0
    await watched.after(60)
    assert topic.statistics.message_rate == 0.0
    await watched.monitors.close()


async def test_messages_older_than_their_ttl_are_acknowledged_except_by_compaction() -> None:
    # Messages of 1970.
    watched = Watched(replace(DEFAULTS, ttl_seconds=10))
    topic = await watched.topic()
    subscriptions = [topic.subscriptions.create(name) for name in ("s", SUBSCRIPTION)]
    await publishing(watched)
    assert [one.cursor.backlog for one in subscriptions] == [3, 3]
    await watched.monitors.expire()
    assert [one.cursor.backlog for one in subscriptions] == [0, 3]


async def test_without_a_ttl_no_message_expires() -> None:
    watched = Watched()
    topic = await watched.topic()
    subscription = topic.subscriptions.create("s")
    await publishing(watched)
    await watched.monitors.expire()
    assert subscription.cursor.backlog == 3


async def test_unneeded_ledgers_are_dropped() -> None:
    watched = Watched()
    topic = await publishing(watched)
    topic.ledger.roll()
    await watched.monitors.trim()
    assert topic.ledger.size_bytes == 0


async def test_sequence_ids_of_deduplication_are_saved() -> None:
    watched = Watched(replace(DEFAULTS, deduplication=True))
    topic = await watched.topic()
    topic.deduplication.switch(on=True)
    await publishing(watched)
    await watched.monitors.keep_sequence_ids()
    assert topic.ledger.cursors[CURSOR].properties == {"p1": "2"}


async def test_producers_above_the_backlog_quota_are_closed() -> None:
    watched = Watched(replace(DEFAULTS, size_quota=BacklogQuota(1)))
    topic = await watched.topic()
    topic.subscriptions.create("s")
    await publishing(watched)
    await watched.monitors.enforce_quotas()
    assert len(topic.producers) == 0


def expiring(minutes: int = 1) -> EffectivePolicies:
    return replace(DEFAULTS, subscription_expiration_minutes=minutes)


def shared(name: str) -> ConsumerOptions:
    return ConsumerOptions(consumer_id=1, name=name, type=pb.CommandSubscribe.Shared)


async def test_an_unconsumed_subscription_is_deleted_after_its_expiration_time() -> None:
    # Two former subscriptions: the first is still in use, the second lost its consumer 30 s ago.
    watched = Watched(expiring())
    topic = await watched.topic()
    subscriptions = {one: topic.subscriptions.create(one) for one in ("idle", "held", "left")}
    topic.subscriptions.create(SUBSCRIPTION)
    subscriptions["held"].add_consumer(RecordingClient(), shared("c"))
    gone = subscriptions["left"].add_consumer(RecordingClient(), shared("c"))
    await watched.monitors.expire_subscriptions()
    assert len(topic.subscriptions) == 4
    watched.clock.advance(31)
    subscriptions["left"].remove_consumer(gone)
    watched.clock.advance(30)
    await watched.monitors.expire_subscriptions()
    assert {one.name for one in topic.subscriptions} == {"held", "left", SUBSCRIPTION}
    assert "idle" not in topic.ledger.cursors
    watched.clock.advance(31)
    await watched.monitors.expire_subscriptions()
    assert {one.name for one in topic.subscriptions} == {"held", SUBSCRIPTION}


async def test_a_seek_or_a_load_restarts_the_expiration_time_of_a_subscription() -> None:
    watched = Watched(expiring())
    topic = await watched.topic()
    topic.subscriptions.create("s")
    watched.clock.advance(50)
    topic.subscriptions.get("s").seek(EARLIEST)
    watched.clock.advance(50)
    await watched.monitors.expire_subscriptions()
    await watched.topics.unload(NAME)
    topic = await watched.topic()
    watched.clock.advance(50)
    await watched.monitors.expire_subscriptions()
    assert "s" in topic.subscriptions
    watched.clock.advance(11)
    await watched.monitors.expire_subscriptions()
    assert "s" not in topic.subscriptions


async def test_without_a_policy_no_subscription_expires() -> None:
    watched = Watched()
    topic = await watched.topic()
    topic.subscriptions.create("s")
    watched.clock.advance(1e9)
    await watched.monitors.expire_subscriptions()
    assert "s" in topic.subscriptions


def unused(mode: DeleteMode = DeleteMode.NO_SUBSCRIPTIONS) -> EffectivePolicies:
    return replace(DEFAULTS, inactive_topics=InactiveTopics(True, 60, mode))


async def test_an_unused_topic_is_deleted_after_its_inactive_time() -> None:
    watched = Watched(unused())
    await watched.topic()
    await watched.monitors.delete_unused()
    assert watched.topics.loaded(NAME) is not None
    watched.clock.advance(61)
    await watched.monitors.delete_unused()
    assert watched.topics.loaded(NAME) is None
    assert not watched.store.holds(str(NAME))


@pytest.mark.parametrize(("minutes", "is_kept"), [(0, False), (1, False), (2, True), (-1, True)])
async def test_an_unused_topic_stays_while_its_messages_are_retained(
    minutes: int, is_kept: bool
) -> None:
    watched = Watched(replace(unused(), retention=Retention(minutes, -1)))
    await watched.topic()
    watched.clock.advance(61)
    await watched.monitors.delete_unused()
    assert (watched.topics.loaded(NAME) is not None) is is_kept


@pytest.mark.parametrize("policies", [DEFAULTS, unused()])
async def test_a_topic_in_use_or_without_the_policy_stays(policies: EffectivePolicies) -> None:
    watched = Watched(policies)
    topic = await watched.topic()
    if policies.inactive_topics.delete:
        await watched.produced()
    watched.clock.advance(1000)
    await watched.monitors.delete_unused()
    assert watched.topics.loaded(NAME) is topic


async def test_a_topic_created_by_rest_and_never_used_is_deleted() -> None:
    # An unused topic, a formerly used topic, and a topic without policies.
    watched = Watched(unused())
    await watched.names.create_namespace(NAMESPACE)
    idle, once, kept = (TopicName.parse(one) for one in ("idle", "once", "kept"))
    await watched.service.create(idle, {})
    await watched.service.create(once, {})
    watched.policies = DEFAULTS
    await watched.service.create(kept, {})
    watched.policies = unused()
    watched.clock.advance(59)
    topic = await watched.topics.get(once)
    watched.clock.advance(2)
    await watched.monitors.delete_unused()
    assert await watched.persistent() == {str(once), str(kept)}
    assert topic.made_by_use
    watched.clock.advance(60)
    await watched.monitors.delete_unused()
    assert await watched.persistent() == {str(kept)}


async def test_an_inactive_partition_is_deleted_only_after_a_use() -> None:
    watched = Watched(unused())
    await watched.names.create_namespace(NAMESPACE)
    base = TopicName.parse("p")
    await watched.service.create_partitioned(base, 2, {})
    await watched.topics.get(TopicName.parse("p-partition-0"))
    watched.clock.advance(1000)
    await watched.monitors.delete_unused()
    assert await watched.persistent() == {f"{base}-partition-1"}
    assert await watched.service.partitions(base, create=False) == 2


@pytest.mark.parametrize("enabled", [False, True])
async def test_the_key_has_a_partitioned_topic_deleted_with_its_last_partition(
    *, enabled: bool
) -> None:
    # A partitioned topic with unused partitions, and a partitioned topic with a partition in use.
    key = "brokerDeleteInactivePartitionedTopicMetadataEnabled"
    watched = Watched(unused(), **{key: str(enabled).lower()})
    await watched.names.create_namespace(NAMESPACE)
    for name in ("idle", "used"):
        await watched.service.create_partitioned(TopicName.parse(name), 2, {})
    topic = await watched.topics.get(TopicName.parse("used-partition-1"))
    add(topic, watched.connection().producer())
    watched.clock.advance(61)
    await watched.monitors.delete_unused()
    snapshot = await watched.names.snapshot(NAMESPACE)
    assert snapshot is not None
    assert (str(TopicName.parse("idle")) in snapshot.partitioned) is not enabled
    assert str(TopicName.parse("used")) in snapshot.partitioned
    assert topic.full_name in await watched.persistent()


async def test_an_imported_topic_is_not_deleted_as_unused() -> None:
    # A name from the store, not created in this test.
    watched = Watched(unused())
    await watched.names.create_namespace(NAMESPACE)
    await watched.names.apply(NAMESPACE, TopicChanges([str(NAME).encode()]))
    topic = await watched.topic()
    watched.clock.advance(1000)
    await watched.monitors.delete_unused()
    assert watched.topics.loaded(NAME) is topic


@pytest.mark.parametrize(
    ("mode", "deleted"), [(DeleteMode.NO_SUBSCRIPTIONS, False), (DeleteMode.CAUGHT_UP, True)]
)
async def test_a_caught_up_subscription_keeps_a_topic_only_in_mode_no_subscriptions(
    mode, deleted
) -> None:
    watched = Watched(unused(mode))
    topic = await watched.topic()
    topic.subscriptions.create("s")
    watched.clock.advance(1000)
    await watched.monitors.delete_unused()
    assert (watched.topics.loaded(NAME) is None) is deleted


async def test_a_failed_monitor_is_logged_and_retried(caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched()
    topic = await watched.topic()
    calls = []

    def update_rates(seconds: float) -> None:
        calls.append(seconds)
        raise ValueError("a fault")

    topic.update_rates = update_rates  # type: ignore[method-assign]
    watched.monitors.start()
    await settle()
    await watched.after(125)
    assert calls == [60, 60]
    assert "retrying" in caplog.text
    await watched.monitors.close()


async def test_a_topic_served_by_another_broker_is_not_deleted() -> None:
    watched = Watched(unused())
    await watched.names.create_namespace(NAMESPACE)
    await watched.service.create(NAME, {})
    watched.clock.advance(61)
    with patch.object(watched.topics, "serves", return_value=False):
        await watched.monitors.delete_unused()
    assert await watched.persistent() == {str(NAME)}


async def test_a_past_publish_time_expires_no_other_message_early() -> None:
    watched = Watched(replace(DEFAULTS, ttl_seconds=10))
    watched.clock.advance(1_000)
    topic, cnx = await watched.produced()
    subscription = topic.subscriptions.create("s")
    now = watched.clock.wall_ms()
    for said in (now, now, 1, now + 10**12, now):
        publish(topic, cnx.producers[1], publish_time=said)
    await watched.monitors.expire()
    assert subscription.cursor.backlog == 5
    watched.clock.advance(11)
    await watched.monitors.expire()
    assert subscription.cursor.backlog == 0
    await settle()
