"""The subscriptions of one topic that stores nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from broker.subscriptions.non_persistent.subscription import NonPersistentSubscription
from broker.subscriptions.subscriptions import check_room, check_type_allowed

if TYPE_CHECKING:
    from collections.abc import Iterator

    import proto.PulsarApi_pb2 as pb
    from broker.messages.entry import Entry
    from broker.subscriptions.consumer import Consumer
    from broker.subscriptions.context import TopicWithPolicies


class NonPersistentSubscriptions:
    """The subscriptions of one topic by name; each is there while it has consumers."""

    def __init__(self, topic: TopicWithPolicies) -> None:
        self._topic = topic
        self._by_name: dict[str, NonPersistentSubscription] = {}
        # Also those whose first consumer is on its way: all that come meanwhile get the same.
        self._opened: WeakValueDictionary[str, NonPersistentSubscription] = WeakValueDictionary()

    def __iter__(self) -> Iterator[NonPersistentSubscription]:
        return iter(tuple(self._by_name.values()))

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

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
            found = NonPersistentSubscription(asked.subscription, self._topic, self)
            self._opened[asked.subscription] = found
        return found

    def has_consumers(self, subscription: NonPersistentSubscription) -> None:
        """Hand it what is published from now on."""
        self._by_name[subscription.name] = subscription

    def became_empty(self, subscription: NonPersistentSubscription) -> None:
        """Forget it."""
        self._by_name.pop(subscription.name, None)

    def publish(self, entry: Entry) -> None:
        """Hand an entry to one consumer of each subscription that has room for it."""
        for subscription in self._by_name.values():
            subscription.publish(entry)

    @property
    def consumers(self) -> Iterator[Consumer]:
        """The consumers of all of them."""
        for subscription in self:
            yield from subscription.consumers

    @property
    def consumer_count(self) -> int:
        """Consumers that are connected, of all subscriptions."""
        return sum(len(one.consumers) for one in self._by_name.values())

    def close(self) -> None:
        """Nothing of them is kept."""

    def close_consumers(self) -> None:
        """Close all consumers, and tell their clients."""
        for subscription in self:
            subscription.close_consumers()

    def policies_changed(self) -> None:
        """Change nothing: policies are asked when a consumer comes."""

    def update_rates(self, seconds: float) -> None:
        """End a period of the statistics."""
        for consumer in self.consumers:
            consumer.update_rates(seconds)
