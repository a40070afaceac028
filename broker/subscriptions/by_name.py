"""The subscriptions of one topic by name, whatever becomes of its messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from server.configuration.addresses import NO_URLS, ServerUrls

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from broker.subscriptions.consumer import Consumer


class HasConsumers(Protocol):
    """A subscription, as far as it is one of several."""

    @property
    def consumers(self) -> Sequence[Consumer]:
        """Those that are connected."""

    def close_consumers(self, new_owner: ServerUrls = NO_URLS) -> None:
        """Disconnect all consumers, and tell their clients."""


S = TypeVar("S", bound=HasConsumers)


class SubscriptionsByName(Generic[S]):
    """The subscriptions of one topic: who goes through them may make and delete some meanwhile."""

    def __init__(self) -> None:
        self._by_name: dict[str, S] = {}

    def __iter__(self) -> Iterator[S]:
        return iter(tuple(self._by_name.values()))

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    @property
    def consumers(self) -> Iterator[Consumer]:
        """The consumers of all of them."""
        for subscription in self:
            yield from subscription.consumers

    @property
    def consumer_count(self) -> int:
        """Consumers that are connected, of all subscriptions."""
        return sum(len(one.consumers) for one in self._by_name.values())

    def close_consumers(self, new_owner: ServerUrls = NO_URLS) -> None:
        """Close all consumers, and tell their clients."""
        for subscription in self:
            subscription.close_consumers(new_owner)

    def update_rates(self, seconds: float) -> None:
        """End a period of the statistics."""
        for consumer in self.consumers:
            consumer.update_rates(seconds)
