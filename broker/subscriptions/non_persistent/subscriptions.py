"""The subscriptions of one topic that stores nothing."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from broker.subscriptions.by_name import SubscriptionsByName
from broker.subscriptions.non_persistent.subscription import NonPersistentSubscription
from broker.subscriptions.subscriptions import check_room, check_type_allowed

if TYPE_CHECKING:
    import proto.PulsarApi_pb2 as pb
    from broker.messages.entry import Entry
    from broker.subscriptions.context import SubscriptionRules, TopicWithPolicies


logger = logging.getLogger(__name__)


class NonPersistentSubscriptions(SubscriptionsByName[NonPersistentSubscription]):
    """The subscriptions of one topic by name; each is there while it has consumers."""

    def __init__(self, topic: TopicWithPolicies, rules: SubscriptionRules) -> None:
        super().__init__()
        self._topic = topic
        self._rules = rules
        # Also those whose first consumer is on its way: all that come meanwhile get the same.
        self._opened: WeakValueDictionary[str, NonPersistentSubscription] = WeakValueDictionary()

    def get(self, name: str) -> NonPersistentSubscription | None:
        """Return a subscription, also one whose first consumer is on its way; else None."""
        return self._opened.get(name)

    async def open(self, asked: pb.CommandSubscribe, _: str, /) -> NonPersistentSubscription:
        """Return the subscription that a client names, made if need be.

        How often a consumer subscribes is not limited here (recorded).

        Raises:
            RequestError: The policies of the topic refuse it.
        """
        check_type_allowed(self._topic, asked)
        check_room(self._topic, self.consumer_count)
        found = self._opened.get(asked.subscription)
        if found is None:
            found = NonPersistentSubscription(asked.subscription, self._topic, self, self._rules)
            self._opened[asked.subscription] = found
        return found

    def has_consumers(self, subscription: NonPersistentSubscription) -> None:
        """Hand it what is published from now on."""
        if subscription.name not in self._by_name:
            self._is_back(subscription)
            self._by_name[subscription.name] = subscription

    def became_empty(self, subscription: NonPersistentSubscription) -> None:
        """Forget it."""
        if self._by_name.pop(subscription.name, None) is not None:
            self._has_gone(subscription)

    def publish(self, entry: Entry) -> None:
        """Hand an entry to one consumer of each subscription that has room for it."""
        for subscription in self._by_name.values():
            try:
                subscription.publish(entry)
            except Exception:
                # Whatever it is: the others get the message, and its producer goes on.
                name, topic = subscription.name, self._topic.name
                logger.exception("a message of %s of %s cannot be delivered", name, topic)

    def close(self) -> None:
        """Nothing of them is kept."""

    def policies_changed(self) -> None:
        """Change nothing: policies are asked when a consumer comes."""
