"""The subscriptions of one non-persistent topic."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import proto.PulsarApi_pb2 as pb
from broker.messages.position import EARLIEST
from broker.messages.subscriptions.by_name import SubscriptionsByName
from broker.messages.subscriptions.consumer import ANY_HASHES, AnySubscription, Consumer
from broker.messages.subscriptions.non_persistent.dispatchers import (
    DirectKeyShared,
    dispatcher_of,
)
from broker.messages.subscriptions.subscriptions import check_room
from server.configuration.addresses import NO_URLS, ServerUrls

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.messages.entry import Entry
    from broker.messages.position import Position
    from broker.messages.subscriptions.consumer import ClientConnection, ConsumerOptions
    from broker.messages.subscriptions.context import Hashes, TopicWithPolicies

logger = logging.getLogger(__name__)


class NoCursor:
    """A stub of a cursor, with the values that statistics show for non-persistent topics."""

    backlog = 0
    mark_delete = EARLIEST


class NonPersistentSubscription(AnySubscription):
    """A subscription of a non-persistent topic, which exists while it has consumers.

    Upstream's class has the same name.

    Attributes:
        durable: Always False: unreceived messages are lost.
        cursor, topic: Commands of consumers check the topic's domain before using more than these
            stubs offer.
        messages_dropped: The number of messages dropped because no consumer had permits.
    """

    durable = False

    def __init__(self, name: str, topic: Any, owner: NonPersistentSubscriptions) -> None:  # noqa: ANN401
        super().__init__(name, topic)
        self.cursor: Any = NoCursor()
        self._owner = owner
        self.type = pb.CommandSubscribe.Exclusive
        self._dispatcher = dispatcher_of(self.type, topic.name, ANY_HASHES, topic.rules)
        self.messages_dropped = 0

    @property
    def consumers(self) -> Sequence[Consumer]:
        """The connected consumers."""
        return self._dispatcher.consumers

    @property
    def ring(self) -> Hashes | None:
        """The assignment of key hashes to consumers; None if the type is not Key_Shared."""
        return self._dispatcher.ring if isinstance(self._dispatcher, DirectKeyShared) else None

    def publish(self, entry: Entry) -> None:
        """Send an entry to one consumer that has permits; drop the entry if there is none."""
        consumer = self._dispatcher.choose(entry)
        if consumer is None:
            self.messages_dropped += entry.message_count
        else:
            consumer.deliver(entry, entry.message_count)
            consumer.sent_together()

    # -- consumers ----------------------------------------------------------------------------

    def add_consumer(self, cnx: ClientConnection, options: ConsumerOptions) -> Consumer:
        """Create a consumer for a client, and connect it to the subscription.

        Raises:
            RequestError: An Exclusive consumer is connected, or the types differ.
        """
        if not self.consumers:
            self.type = options.type
            self._dispatcher = dispatcher_of(
                self.type, self.topic.name, options.key_shared, self.topic.rules
            )
        self._check_fits(options)
        consumer = Consumer(cnx, options, self, self.topic.name.partition_index)
        self._dispatcher.add(consumer)
        self._owner.has_consumers(self)
        return consumer

    def remove_consumer(self, consumer: Consumer) -> None:
        """Disconnect a consumer from the subscription."""
        if consumer in self.consumers:
            self.topic.touched()
            self._dispatcher.remove(consumer)
            self._count(consumer)
            if not self.consumers:
                self._owner.became_empty(self)

    def close_consumers(self, new_owner: ServerUrls = NO_URLS) -> None:
        """Disconnect all consumers, and notify their clients."""
        for consumer in list(self.consumers):
            self.remove_consumer(consumer)
            consumer.close(new_owner)

    def delete(self) -> None:
        """Close all consumers, which ends the subscription."""
        self.close_consumers()

    # -- commands of consumers ----------------------------------------------------------------

    def flow(self, consumer: Consumer, permits: int) -> None:
        """Add permits that a consumer's client has granted."""
        consumer.flowed(permits)

    def acknowledge(self, consumer: Consumer, ids: Sequence[pb.MessageIdData]) -> None:
        """Count an acknowledgement for the statistics, without further effect."""
        self.topic.touched()
        consumer.last_acked_at = self.topic.clock.wall_ms()
        consumer.messages_acked += len(ids)

    def acknowledge_cumulatively(self, consumer: Consumer, _: pb.MessageIdData) -> None:
        """Record the time of an acknowledgement for the statistics, without further effect."""
        consumer.last_acked_at = self.topic.clock.wall_ms()

    def redeliver(
        self,
        consumer: Consumer,
        ids: Sequence[pb.MessageIdData],
        epoch: int | None,
        *,
        more: bool = False,
    ) -> None:
        """Do nothing: sent messages are not stored."""

    def seek(self, first: Position) -> None:
        """Do nothing: no messages are stored. SEEK succeeds, as on a real broker."""


class NonPersistentSubscriptions(SubscriptionsByName[NonPersistentSubscription]):
    """The subscriptions of a non-persistent topic by name; each exists while it has consumers."""

    def __init__(self, topic: TopicWithPolicies) -> None:
        super().__init__()
        self._topic = topic
        # Includes subscriptions waiting for their first consumer, shared by simultaneous arrivals.
        self._opened: WeakValueDictionary[str, NonPersistentSubscription] = WeakValueDictionary()

    def get(self, name: str) -> NonPersistentSubscription | None:
        """Return the subscription with the given name, even before its first consumer, or None."""
        return self._opened.get(name)

    async def open(self, asked: pb.CommandSubscribe, host: str) -> NonPersistentSubscription:
        """Return the subscription that a client requests, after creating it if missing.

        The subscribe rate is not limited here (recorded).

        Raises:
            RequestError: The topic's policies refuse the consumer.
        """
        check_room(self._topic, self.consumer_count)
        found = self._opened.get(asked.subscription)
        if found is None:
            found = NonPersistentSubscription(asked.subscription, self._topic, self)
            self._opened[asked.subscription] = found
        return found

    def has_consumers(self, subscription: NonPersistentSubscription) -> None:
        """Start delivering to a subscription, because its first consumer has connected."""
        if subscription.name not in self._by_name:
            self._is_back(subscription)
            self._by_name[subscription.name] = subscription

    def became_empty(self, subscription: NonPersistentSubscription) -> None:
        """Remove a subscription that has lost its last consumer."""
        if self._by_name.pop(subscription.name, None) is not None:
            self._has_gone(subscription)

    def publish(self, entry: Entry) -> None:
        """In each subscription, send an entry to one consumer that has permits, if any."""
        for subscription in self._by_name.values():
            try:
                subscription.publish(entry)
            except Exception:
                # A failure must not affect other subscriptions or the producer.
                name, topic = subscription.name, self._topic.name
                logger.exception("a message of %s of %s cannot be delivered", name, topic)

    def close(self) -> None:
        """Do nothing: subscriptions of a non-persistent topic have no timers."""

    def policies_changed(self) -> None:
        """Do nothing: policies are read for each new consumer."""
