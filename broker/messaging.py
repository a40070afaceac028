"""Assembly of the broker's messaging: message store, loaded topics, publishing limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.message_metrics.gather import MessageMetrics, MetricSource
from broker.messages.errors import MessageStoreError
from broker.messages.loading.loaded_topics import LoadedTopics
from broker.messages.loading.topic_deletion import TopicDeletion
from broker.messages.monitors import TopicMonitors
from broker.messages.producers import ProducerNames
from broker.messages.publishing.checks import PublishRules
from broker.messages.publishing.throttling import publish_limits
from broker.messages.stores.memory import MemoryMessageStore
from broker.messages.stores.room import StoreBounds
from broker.messages.stores.sqlite.store import DatabaseOptions, SqliteMessageStore
from server.errors import StartError
from server.limiter_report.report import StoredMessages

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from broker.configuration.config import BrokerConfig
    from broker.messages.loading.loaded_topics import TopicParts
    from broker.messages.stores.managed_ledger import MessageStore
    from limiter.clock import Clock


class Messaging:
    """The parts of the broker that serve messages: store, loaded topics, publishing limits.

    The store is not yet opened; see ``open``.

    Attributes:
        store: The message store.
        loaded_topics: The topics in use.
        deletion: Deletes topics, in use or not.
        producer_names: Names for producers without a name.
        publish_rules: The limits that each published message must meet.
        publish_limits: The limits on all publishing of the broker together.
        monitors: Periodic checks of the loaded topics.
        metrics: The metrics of messages.
    """

    def __init__(self, parts: TopicParts) -> None:
        config, clock = parts.config, parts.clock
        self.store = store = message_store_for(config, clock)
        self.loaded_topics = topics = LoadedTopics(parts, store)
        self.deletion = TopicDeletion(topics, parts.topics, store)
        parts.policies.on_change(topics.policies_changed)
        parts.ownership.on_lost(lambda bundle: topics.let_go(bundle.holds))
        parts.ownership.on_moved(self.deletion.forget)
        self.producer_names = ProducerNames(config.cluster_name, parts.instance)
        self.publish_rules = PublishRules.of(config)
        self.publish_limits = publish_limits(config.publishing, clock)
        self.monitors = TopicMonitors(topics, self.deletion, config.publishing)
        seconds = config.publishing.statistics_seconds
        source = MetricSource(config.cluster_name, config.metrics, seconds, topics, store.figures)
        self.metrics = MessageMetrics(source)

    def follow(self, config: BrokerConfig) -> None:
        """Apply the publishing limits of a configuration that was changed at run time."""
        self.publish_limits.follow(config.publishing)

    def stored(self) -> StoredMessages:
        """Return bytes, limit and refusals of stored messages, for the limiter's report."""
        figures = self.store.figures()
        return StoredMessages(figures.charged_bytes, figures.bounds.process, figures.refused)

    async def open(self, exits: AsyncExitStack) -> None:
        """Open the message store, and start the periodic checks of loaded topics.

        ``exits`` closes all of them at the shutdown.

        Raises:
            StartError: The store cannot be opened; one sentence.
        """
        try:
            await self.store.open()
        except MessageStoreError as error:
            raise StartError(str(error)) from None
        exits.push_async_callback(self.store.close)
        exits.push_async_callback(self.loaded_topics.close)
        self.monitors.start()
        exits.push_async_callback(self.monitors.close)


def message_store_for(config: BrokerConfig, clock: Clock) -> MessageStore:
    """Return the message store that the configuration selects, not yet opened.

    Args:
        config: The broker's configuration.
        clock: Times the retries on a full disk, and the closing of ledgers.
    """
    keys = config.message_store
    bounds = StoreBounds(keys.max_topic_bytes, keys.max_namespace_bytes, keys.max_bytes)
    place = keys.place.database or keys.place.temporary_in
    if place is None:
        return MemoryMessageStore(bounds, keys.max_entries_per_ledger, clock.wall_ms)
    options = DatabaseOptions(
        keys.fsync,
        keys.drop_damaged,
        keys.place.database is None,
        keys.max_entries_per_ledger,
    )
    return SqliteMessageStore(place, clock, bounds, options)
