"""Periodic work that skips topics at rest does what it does when it visits them all."""

from dataclasses import replace
from random import Random
from typing import Any
from unittest.mock import patch

import pytest

import proto.PulsarApi_pb2 as pb
from broker.messages.deduplication import CURSOR
from broker.messages.resting import RestingTopics
from broker.messages.subscriptions.consumer import ConsumerOptions
from broker.messages.topic import PersistentTopic
from broker.policies.effective import (
    DEFAULTS,
    BacklogQuota,
    DeleteMode,
    InactiveTopics,
    QuotaAction,
    Retention,
)
from proto.names import TopicName
from tests.support.clocks.settle import settle
from tests.support.messages.producing import ProducingConnection, add, publish
from tests.support.subscriptions.recording_client import RecordingClient
from tests.unit.broker.messages.loading.test_loaded_topics import NAMESPACE
from tests.unit.broker.messages.test_monitors import Watched

SEEDS, MINUTES = 40, 90
NAMES = [TopicName.parse(f"persistent://public/default/t{number}") for number in range(3)]
POLICIES = [
    DEFAULTS,
    replace(DEFAULTS, ttl_seconds=200),
    replace(DEFAULTS, retention=Retention(minutes=7, megabytes=-1)),
    replace(DEFAULTS, retention=Retention(minutes=-1, megabytes=0)),
    replace(DEFAULTS, inactive_topics=InactiveTopics(delete=True, after_seconds=330)),
    replace(DEFAULTS, inactive_topics=InactiveTopics(True, 100, DeleteMode.CAUGHT_UP)),
    replace(DEFAULTS, subscription_expiration_minutes=4),
    replace(DEFAULTS, age_quota=BacklogQuota(300, QuotaAction.EVICT)),
    replace(DEFAULTS, size_quota=BacklogQuota(100)),
    replace(DEFAULTS, deduplication=True),
    replace(DEFAULTS, compaction_threshold_bytes=90),
]


class Life:
    """A random history of topics, their clients and policies, a minute a step."""

    def __init__(self, random: Random) -> None:
        self._random = random
        keys = {"preciseTimeBasedBacklogQuotaCheck": "true"}
        self.watched = Watched(random.choice(POLICIES), **keys)
        self._producers: dict[TopicName, ProducingConnection] = {}
        self._consumers: list[tuple[Any, Any]] = []
        self.skipped = 0

    async def begin(self) -> None:
        await self.watched.names.create_namespace(NAMESPACE)

    async def minute(self) -> list[object]:
        """Do something, let a minute pass, do all periodic work, and return the outcome."""
        watched, random = self.watched, self._random
        for _ in range(random.choice((0, 0, 0, 1, 2))):
            await random.choice((self._publish, self._consume, self._leave, self._acknowledge))()
        if random.random() < 0.04:
            watched.policies = random.choice(POLICIES)
            watched.topics.policies_changed(None)
        await settle()
        watched.clock.advance(60)
        monitors = watched.monitors
        for work in (
            *(monitors.update_rates, monitors.expire, monitors.trim, monitors.keep_sequence_ids),
            *(monitors.enforce_quotas, monitors.delete_unused, monitors.expire_subscriptions),
            monitors.compact,
        ):
            await work()
            await settle()
        self.skipped += len(watched.topics) - len(watched.topics.resting.awake())
        return [self._outcome(topic) for topic in watched.topics]

    def _outcome(self, topic: Any) -> object:
        ledger = topic.ledger
        subscriptions = sorted(
            (one.name, one.cursor.backlog, one.total_expired, len(one.consumers))
            for one in topic.subscriptions
        )
        rates = [one.rates.current for one in topic.subscriptions.consumers]
        kept = ledger.cursors.get(CURSOR)
        ids = None if kept is None else dict(kept.properties)
        entries = [one.entries for one in ledger.ledgers]
        return (
            *(topic.full_name, topic.statistics.message_rate, subscriptions, rates, ids, entries),
            *(len(topic.producers), dict(topic.evictions), topic.sizes.last_counts),
        )

    async def _topic(self) -> PersistentTopic:
        name = self._random.choice(NAMES)
        topic = await self.watched.topics.get(name)
        assert isinstance(topic, PersistentTopic)
        return topic

    async def _publish(self) -> None:
        topic = await self._topic()
        if not len(topic.producers):
            cnx = self._producers[topic.name] = self.watched.connection()
            add(topic, cnx.producer())
        now = topic.clock.wall_ms()
        producer = self._producers[topic.name].producers[1]
        first = producer.statistics.messages
        for number in range(self._random.randrange(4)):
            publish(topic, producer, first + number, publish_time=now)

    async def _consume(self) -> None:
        topic = await self._topic()
        name = self._random.choice("ab")
        subscription = topic.subscriptions.get(name) or topic.subscriptions.create(name)
        options = ConsumerOptions(consumer_id=1, name="c", type=pb.CommandSubscribe.Shared)
        consumer = subscription.add_consumer(RecordingClient(), options)
        subscription.flow(consumer, self._random.randrange(5))
        self._consumers.append((subscription, consumer))

    async def _acknowledge(self) -> None:
        topic = await self._topic()
        for subscription in topic.subscriptions:
            if not subscription.internal and subscription.cursor.backlog:
                subscription.skip(1)

    async def _leave(self) -> None:
        topic = await self._topic()
        for producer in topic.producers:
            topic.producer_left(producer)
        if self._consumers:
            subscription, consumer = self._consumers.pop(0)
            subscription.remove_consumer(consumer)


async def _lived(seed: int) -> tuple[list[object], int]:
    life = Life(Random(seed))
    await life.begin()
    outcomes = [await life.minute() for _ in range(MINUTES)]
    return [*outcomes], life.skipped


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_skipping_topics_at_rest_changes_no_outcome(seed: int) -> None:
    rested, skipped = await _lived(seed)
    with patch.object(RestingTopics, "rest", lambda *_: None):
        visited, nothing = await _lived(seed)
    assert rested == visited
    assert skipped > MINUTES / 3
    assert not nothing
