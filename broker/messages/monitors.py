"""Periodic work on all loaded topics.

Expiry, retention, backlog quotas, unused topics and subscriptions, snapshots of sequence ids,
compaction, and rates.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from inspect import isawaitable
from typing import TYPE_CHECKING

from broker.errors import RefusedError
from broker.messages.backlog_quota import enforce_quota
from broker.messages.errors import MessageStoreError
from broker.messages.resting import due_work, kept_seconds, unused_at
from broker.messages.topic import PersistentTopic
from broker.stores.changes import StoreError
from limiter.clock import clock_sleep
from limiter.tasks import BackgroundTasks
from server.tasks.cooperative import in_turns

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from broker.configuration.publishing_keys import PublishingConfig
    from broker.messages.loading.loaded_topics import LoadedTopics
    from broker.messages.loading.topic_deletion import TopicDeletion
    from broker.messages.topic import Topic
    from proto.names import TopicName

logger = logging.getLogger(__name__)


class TopicMonitors:
    """The tasks of periodic work on loaded topics; topics that need no work now are skipped."""

    def __init__(
        self, topics: LoadedTopics, deletion: TopicDeletion, config: PublishingConfig
    ) -> None:
        self._topics = topics
        self._deletion = deletion
        self._config = config
        self._clock = topics.clock
        self._tasks = BackgroundTasks()
        # Topics at rest whose rates of the last period are not yet over.
        self._settling: list[Topic] = []
        # The time of each monitor's next run, by the name of its method.
        self._runs: dict[str, float] = {}

    def start(self) -> None:
        """Start all periodic work; each task first runs after its own interval."""
        config = self._config
        self._every(lambda: config.statistics_seconds, self.update_rates)
        self._every(lambda: config.expiry_check_seconds, self.expire)
        self._every(lambda: config.retention_check_seconds, self.trim)
        self._every(lambda: config.dedup_snapshot_seconds, self.keep_sequence_ids)
        self._every(lambda: config.quota_check_seconds, self.enforce_quotas)
        self._every(lambda: config.inactive_check_seconds, self.delete_unused)
        self._every(lambda: config.subscription_check_seconds, self.expire_subscriptions)
        self._every(lambda: config.compaction_check_seconds, self.compact)

    def _every(
        self, seconds: Callable[[], float], work: Callable[[], Coroutine[object, object, None]]
    ) -> None:
        if seconds() > 0:
            self._tasks.start(self._repeat(seconds, work))

    async def _repeat(
        self, seconds: Callable[[], float], work: Callable[[], Coroutine[object, object, None]]
    ) -> None:
        while True:
            self._runs[work.__name__] = self._clock.now() + seconds()
            await clock_sleep(self._clock, seconds())
            try:
                await work()
            except Exception:
                logger.exception("a monitor of topics failed; retrying in %g s", seconds())

    async def close(self) -> None:
        """Stop all periodic work."""
        self._tasks.cancel()
        await self._tasks.finished()

    async def _each(self, work: Callable[[PersistentTopic], object]) -> None:
        async for topic in in_turns(self._topics.resting.awake()):
            if isinstance(topic, PersistentTopic) and not topic.closing:
                try:
                    done = work(topic)
                    if isawaitable(done):
                        await done
                except MessageStoreError as error:
                    logger.warning("%s: %s", topic.name, error)

    # -- the work -----------------------------------------------------------------------------

    async def update_rates(self) -> None:
        """Compute all topics' rates for the statistics period that ends now.

        Topics that then need no further periodic work are skipped from now on.
        """
        seconds, resting, runs = self._config.statistics_seconds, self._topics.resting, self._runs
        settling, self._settling = self._settling, []
        async for topic in in_turns(settling):
            if topic.rests:
                topic.update_rates(seconds)
        async for topic in in_turns(self._topics.resting.awake()):
            if not topic.closing:
                topic.update_rates(seconds)
                due = due_work(topic, self._config.rollover_seconds)
                resting.rest(topic, min(max(at, runs.get(name, at)) for name, at in due.items()))
                if topic.rests:
                    self._settling.append(topic)

    async def expire(self) -> None:
        """Acknowledge messages older than the topic's TTL."""
        await self._each(_expire)

    async def trim(self) -> None:
        """Delete ledgers that no subscription needs, as far as retention allows."""
        opened_before_ms = self._clock.wall_ms() - int(1000 * self._config.rollover_seconds)
        await self._each(lambda topic: topic.drop_unneeded(opened_before_ms))

    async def keep_sequence_ids(self) -> None:
        """Save the producers' sequence ids, which deduplication compares."""
        await self._each(lambda topic: topic.deduplication.save())

    async def enforce_quotas(self) -> None:
        """For each topic that exceeds a backlog quota, close its producers or skip old messages."""
        await self._each(enforce_quota)

    async def check_quotas(self) -> None:
        """Enforce the backlog quotas of all topics, also of those at rest."""
        self._topics.resting.wake_all()
        await self.enforce_quotas()

    async def compact(self) -> None:
        """Start compacting the topics whose uncompacted data exceeds the policies' threshold."""
        await self._each(lambda topic: topic.compaction.start_if_due())

    async def expire_subscriptions(self) -> None:
        """Delete durable subscriptions unused for longer than policies allow."""
        await self._each(_expire_subscriptions)

    async def delete_unused(self) -> None:
        """Delete topics unused for longer than policies allow, except imported topics."""
        partitioned: set[TopicName] = set()
        async for name in self._unused():
            await self._delete_unused(name)
            partitioned.add(name.partitioned_name)
        if self._config.deletes_unused_partitioned:
            for name in partitioned:
                with suppress(RefusedError, StoreError):
                    await self._deletion.delete_without_partitions(name)

    async def _unused(self) -> AsyncIterator[TopicName]:
        """Yield the names of topics, loaded or not, unused for longer than policies allow."""
        self._topics.resting.looked_at = self._clock.now()
        async for topic in in_turns(self._topics.resting.awake()):
            if topic.in_use:
                topic.idle_since = self._clock.now()
            elif unused_at(topic) <= self._clock.now():
                yield topic.name
        async for name, since in in_turns(self._topics.made.unused()):
            if self._clock.now() - since >= kept_seconds(name, self._topics.policies_of(name)):
                yield name

    async def _delete_unused(self, name: TopicName) -> None:
        if not self._topics.serves(name):
            return  # Another broker took over while this broker was suspended.
        logger.info("deleting %s, which is unused", name)
        try:
            await self._deletion.delete(name)
        except (RefusedError, StoreError, MessageStoreError) as error:
            logger.info("%s is not deleted: %s", name, error)


async def _expire(topic: PersistentTopic) -> None:
    ttl = topic.policies.ttl_seconds
    if ttl > 0:
        oldest_kept_ms = topic.clock.wall_ms() - ttl * 1000
        for subscription in tuple(topic.subscriptions):
            if not subscription.internal:
                await subscription.expire_older(oldest_kept_ms)


def _expire_subscriptions(topic: PersistentTopic) -> None:
    minutes = topic.policies.subscription_expiration_minutes
    if minutes <= 0:
        return
    for subscription in topic.subscriptions:
        if topic.clock.now() - subscription.unused_since > 60 * minutes:
            logger.info("deleting %s of %s, which expired", subscription.name, topic.name)
            subscription.delete()
