"""A consumer of all topics matching a pattern, now and later."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from client.consumers.all_of import all_of
from client.consumers.consumer import Consumer, topics_consumer
from client.discovery.kept_topics import KeptTopics
from client.discovery.schedule import DiscoveryOptions
from client.discovery.topic_discovery import TopicDiscovery
from client.exceptions import InvalidConfiguration
from client.messages.enums import RegexSubscriptionMode
from client.patience import in_time

if TYPE_CHECKING:
    from client.consumers.multi_topics_consumer import MultiTopicsConsumer
    from client.consumers.options import ConsumerOptions
    from client.context import ClientContext
    from client.discovery.topics_pattern import TopicsPattern

_MODES = {
    RegexSubscriptionMode.PersistentOnly: pb.CommandGetTopicsOfNamespace.PERSISTENT,
    RegexSubscriptionMode.NonPersistentOnly: pb.CommandGetTopicsOfNamespace.NON_PERSISTENT,
    RegexSubscriptionMode.AllTopics: pb.CommandGetTopicsOfNamespace.ALL,
}


class PatternConsumer(Consumer):
    """A consumer of all topics matching a pattern.

    New topics are subscribed to, deleted topics are left; the subscription of a topic no longer
    matching stays.

    Args:
        context: The client's context.
        topics: The topics' consumers, at first empty.
        pattern: The pattern.
        options: Consumer options, including the discovery schedule.
    """

    def __init__(
        self,
        context: ClientContext,
        topics: MultiTopicsConsumer,
        pattern: TopicsPattern,
        options: ConsumerOptions,
    ) -> None:
        super().__init__(context, topics, pattern.text)
        topics.endless = True
        mode = options.regex_subscription_mode
        self._kept = KeptTopics(topics, context.cluster.patience)
        rules = DiscoveryOptions(
            pattern=pattern.text,
            properties=options.properties or {},
            persistent=mode is RegexSubscriptionMode.PersistentOnly,
            period_seconds=max(1.0, options.pattern_auto_discovery_period),
            operation_timeout_seconds=context.operation_timeout_seconds,
        )
        self.discovery = TopicDiscovery(
            context, pattern, _MODES[mode], rules, options.discovery_schedule, self._kept.want
        )

    async def open(self) -> None:
        """List the topics and subscribe to them; none need exist yet.

        Raises:
            PulsarException: Listing, or subscribing to a topic, failed.
        """
        await self._kept.open(await self.discovery.open())
        self.discovery.schedule.subscribed()

    async def close(self) -> None:
        """See Consumer."""
        await all_of([self.discovery.close(), self._kept.close(), super().close()])


async def open_pattern_consumer(
    context: ClientContext, pattern: TopicsPattern, subscription: str, options: ConsumerOptions
) -> PatternConsumer:
    """Subscribe to all topics matching a pattern.

    Args:
        context: The client's context.
        pattern: The pattern.
        subscription: Name of the subscription.
        options: Consumer options.

    Raises:
        InvalidConfiguration: The options exclude a pattern.
        PulsarException: Subscribing failed; no topic is subscribed to.
    """
    if options.retry_enabled:
        raise InvalidConfiguration(
            "retry_enabled goes with topics that are named, not with a pattern"
        )
    # Subscribing must not recreate a topic deleted after its listing.
    options = replace(options, force_topic_creation=False)
    consumer = PatternConsumer(
        context,
        topics_consumer(context, subscription, options),
        pattern,
        options,
    )
    due = context.due()
    try:
        await consumer.open()
    except BaseException:
        await in_time(context.clock, due, consumer.close())
        raise
    return consumer
