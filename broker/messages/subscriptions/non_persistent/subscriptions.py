"""The subscriptions of one non-persistent topic."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from broker.messages.subscriptions.by_name import SubscriptionsByName
from broker.messages.subscriptions.non_persistent.subscription import NonPersistentSubscription
from broker.messages.subscriptions.subscriptions import check_room, check_type_allowed

if TYPE_CHECKING:
    import proto.PulsarApi_pb2 as pb
    from broker.messages.entry import Entry
    from broker.messages.subscriptions.context import SubscriptionRules, TopicWithPolicies


logger = logging.getLogger(__name__)


class NonPersistentSubscriptions(SubscriptionsByName[NonPersistentSubscription]):
    """The subscriptions of one topic by name; each exists while consumers are connected."""

    def __init__(self, topic: TopicWithPolicies, rules: SubscriptionRules) -> None:
        super().__init__()
        self._topic = topic
        self._rules = rules
        # Includes subscriptions waiting for their first consumer, shared by simultaneous arrivals.
        self._opened: WeakValueDictionary[str, NonPersistentSubscription] = WeakValueDictionary()

    def get(self, name: str) -> NonPersistentSubscription | None:
        """Return a subscription, also before the first consumer; None if unknown."""
        return self._opened.get(name)

    async def open(self, asked: pb.CommandSubscribe, _: str, /) -> NonPersistentSubscription:
        """Return the subscription named by a client, created if missing.

        The subscribe rate is not limited here (recorded).

        Raises:
            RequestError: The topic's policies refuse the consumer.
        """
        check_type_allowed(self._topic, asked)
        check_room(self._topic, self.consumer_count)
        found = self._opened.get(asked.subscription)
        if found is None:
            found = NonPersistentSubscription(asked.subscription, self._topic, self, self._rules)
            self._opened[asked.subscription] = found
        return found

    def has_consumers(self, subscription: NonPersistentSubscription) -> None:
        """Start delivering to a subscription."""
        if subscription.name not in self._by_name:
            self._is_back(subscription)
            self._by_name[subscription.name] = subscription

    def became_empty(self, subscription: NonPersistentSubscription) -> None:
        """Remove a subscription."""
        if self._by_name.pop(subscription.name, None) is not None:
            self._has_gone(subscription)

    def publish(self, entry: Entry) -> None:
        """Send an entry to one consumer with permits of each subscription."""
        for subscription in self._by_name.values():
            try:
                subscription.publish(entry)
            except Exception:
                # A failure must not affect other subscriptions or the producer.
                name, topic = subscription.name, self._topic.name
                logger.exception("a message of %s of %s cannot be delivered", name, topic)

    def close(self) -> None:
        """Do nothing: no state is stored."""

    def policies_changed(self) -> None:
        """Do nothing: policies are read for each new consumer."""
