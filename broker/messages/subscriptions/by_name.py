"""The common base class of a topic's subscriptions, with or without stored messages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, TypeVar

from broker.messages.compaction.topic_compaction import SUBSCRIPTION as COMPACTION
from broker.messages.subscriptions.consumer import AnySubscription, Sent
from server.configuration.addresses import NO_URLS, ServerUrls

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import proto.PulsarApi_pb2 as pb
    from broker.messages.subscriptions.consumer import Consumer


S = TypeVar("S", bound=AnySubscription)


class SubscriptionsByName(ABC, Generic[S]):
    """The subscriptions of one topic by name, which may change during iteration.

    Attributes:
        gone: The messages that removed subscriptions have sent, by whether they were internal.
    """

    def __init__(self) -> None:
        self._by_name: dict[str, S] = {}
        self.gone = {False: Sent(), True: Sent()}

    def __iter__(self) -> Iterator[S]:
        return iter(tuple(self._by_name.values()))

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    @abstractmethod
    def get(self, name: str) -> S | None:
        """Return the subscription with the given name, or None."""

    @abstractmethod
    async def open(self, asked: pb.CommandSubscribe, host: str) -> S:
        """Return the subscription that a client requests, after creating it if missing.

        Args:
            asked: The client's request.
            host: The client's address, without the port.

        Raises:
            RequestError: Creation is forbidden, the topic's policies refuse the consumer, or the
                consumer subscribes too often.
        """

    @abstractmethod
    def policies_changed(self) -> None:
        """Read the topic's changed policies, and apply them."""

    @abstractmethod
    def close(self) -> None:
        """Stop all timers of the subscriptions, without saving cursors."""

    @property
    def consumers(self) -> Iterator[Consumer]:
        """The connected consumers of all subscriptions."""
        for subscription in self:
            yield from subscription.consumers

    @property
    def consumer_count(self) -> int:
        """The number of connected consumers of all subscriptions."""
        return sum(len(one.consumers) for one in self._by_name.values())

    def sent(self) -> Mapping[bool, Sent]:
        """Return the number and bytes of the messages sent to consumers since the topic was loaded.

        Key True has the messages of internal subscriptions, key False those of all others.
        """
        found = dict(self.gone)
        for subscription in self:
            _add(found, subscription)
        return found

    def _has_gone(self, subscription: S) -> None:
        _add(self.gone, subscription)

    def _is_back(self, subscription: S) -> None:
        """Subtract a subscription from the totals of removed subscriptions, as it is used again.

        If a consumer is being attached while the last other consumer leaves, it restores the
        removed subscription.
        """
        _add(self.gone, subscription, -1)

    def close_consumers(self, new_owner: ServerUrls = NO_URLS) -> None:
        """Close all consumers, and notify their clients."""
        for subscription in self:
            subscription.close_consumers(new_owner)

    def update_rates(self, seconds: float) -> None:
        """Compute all consumers' rates for the statistics period that ends now."""
        for consumer in self.consumers:
            consumer.update_rates(seconds)


def _add(sums: dict[bool, Sent], subscription: AnySubscription, sign: int = 1) -> None:
    own, more = subscription.name == COMPACTION, subscription.sent()
    messages, size_bytes = sums[own]
    sums[own] = Sent(messages + sign * more.messages, size_bytes + sign * more.size_bytes)
