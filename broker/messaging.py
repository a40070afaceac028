"""Assembly of a broker's messaging parts: store, topics, subscriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker.message_metrics.gather import MessageMetrics, MetricSource
from broker.messages.loading.loaded_topics import LoadedTopics, TopicParts
from broker.messages.loading.topic_creation import CreationRules, TopicCreation
from broker.messages.managed_ledger import MessageStoreError
from broker.messages.monitors import TopicMonitors
from broker.messages.publishing.names import ProducerNames
from broker.messages.publishing.rules import PublishRules
from broker.messages.publishing.throttling import PublishLimits, publish_limits
from broker.messages.stores.open_store import message_store_for
from broker.subscriptions.context import SubscriptionRules
from broker.subscriptions.non_persistent.subscriptions import NonPersistentSubscriptions
from broker.subscriptions.subscriptions import Subscriptions
from server.errors import StartError
from server.limiter_report.report import StoredMessages
from server.tasks.cooperative import SharedTurns

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AsyncExitStack

    from broker.configuration.config import BrokerConfig
    from broker.messages.managed_ledger import MessageStore
    from broker.messages.stores.figures import StoreFigures
    from broker.ownership.ownership import Ownership
    from broker.policies.service import PolicyService
    from broker.stores.store import MetadataStore
    from broker.topics.rules import TopicRules
    from broker.topics.service import TopicService
    from limiter.clock import Clock
    from proto.names import NamespaceName


class MessagingContext(NamedTuple):
    """Dependencies of the messaging parts.

    Attributes:
        metadata: The names of topics.
        topics: Creates and deletes topics.
        topic_rules: Returns the rules of creation in a namespace.
        policies: Effective policies of topics.
        ownership: Knows the topics served by this broker.
        address: Returns host and port of the broker's admin API.
        instance: A number of this start, part of producers' names.
    """

    config: BrokerConfig
    clock: Clock
    metadata: MetadataStore
    topics: TopicService
    topic_rules: Callable[[NamespaceName], TopicRules]
    policies: PolicyService
    ownership: Ownership
    address: Callable[[], str]
    instance: int = 0


class Messaging(NamedTuple):
    """The messaging parts of a broker.

    Attributes:
        store: The message store.
        loaded_topics: The topics in use.
        producer_names: Names for producers without a name.
        publish_rules: The bounds of one message.
        publish_limits: The bounds of all publishing together.
        monitors: Periodic checks of the loaded topics.
        metrics: The metrics of messages.
        store_figures: Returns the contents and counters of the store.
    """

    store: MessageStore
    loaded_topics: LoadedTopics
    producer_names: ProducerNames
    publish_rules: PublishRules
    publish_limits: PublishLimits
    monitors: TopicMonitors
    metrics: MessageMetrics
    store_figures: Callable[[], StoreFigures]

    def follow(self, config: BrokerConfig) -> None:
        """Apply a configuration changed at run time."""
        self.publish_limits.follow(config.publishing)

    def stored(self) -> StoredMessages:
        """Return the figures of stored messages, for the limiter's report."""
        figures = self.store_figures()
        return StoredMessages(figures.charged_bytes, figures.bounds.process, figures.refused)

    async def open(self, exits: AsyncExitStack) -> None:
        """Open the store of messages; ``exits`` closes store and topics.

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


def messaging_of(context: MessagingContext) -> Messaging:
    """Assemble the messaging parts, to be opened next."""
    config, clock = context.config, context.clock
    store = message_store_for(config, clock)
    rules, turns = SubscriptionRules.of(config), SharedTurns()
    topics = LoadedTopics(
        TopicParts(
            config=config,
            clock=clock,
            store=store,
            creation=TopicCreation(
                context.metadata,
                context.topics,
                CreationRules(context.topic_rules, context.ownership.owns, context.address),
            ),
            owns=context.ownership.owns,
            topics=context.topics,
            policies_of=context.policies.of,
            subscriptions_of=lambda topic: Subscriptions(topic, rules, turns),
            direct_subscriptions_of=lambda topic: NonPersistentSubscriptions(topic, rules),
            alone=context.ownership.alone,
        )
    )
    context.policies.on_change(topics.policies_changed)
    context.ownership.on_lost(lambda bundle: topics.let_go(bundle.holds))
    context.ownership.on_moved(topics.forget)
    names = ProducerNames(config.cluster_name, context.instance)
    limits = publish_limits(config.publishing, clock)
    monitors = TopicMonitors(topics, config.publishing, clock)
    period_seconds = config.publishing.statistics_seconds
    source = MetricSource(
        config.cluster_name, config.metrics, period_seconds, topics, store.figures
    )
    return Messaging(
        store=store,
        loaded_topics=topics,
        producer_names=names,
        publish_rules=PublishRules.of(config),
        publish_limits=limits,
        monitors=monitors,
        metrics=MessageMetrics(source),
        store_figures=store.figures,
    )
