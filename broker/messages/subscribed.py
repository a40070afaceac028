"""The subscriptions of a topic, as far as the topic and those who look after it need them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from server.configuration.addresses import NO_URLS, ServerUrls

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    import proto.PulsarApi_pb2 as pb
    from broker.messages.entry import Entry
    from broker.messages.position import Position


class Sent(NamedTuple):
    """Messages that were sent to consumers, redelivered included, and their bytes."""

    messages: int = 0
    size_bytes: int = 0


class TopicConsumer(Protocol):
    """A consumer, as far as its topic needs it."""

    @property
    def takes_any_schema(self) -> bool:
        """True if it reads whatever schema there is (AUTO_CONSUME)."""


class TopicSubscription(Protocol):
    """A subscription, as far as its topic needs it.

    Attributes:
        name: Its own.
        consumers: Those that are connected.
    """

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def consumers(self) -> Collection[TopicConsumer]:
        """Its consumers."""

    def delete(self) -> None:
        """Close all consumers, and forget what they acknowledged."""


class SubscriptionCursor(Protocol):
    """A cursor, as far as the topic needs it."""

    @property
    def backlog(self) -> int:
        """Entries that are not acknowledged."""

    @property
    def backlog_bytes(self) -> int:
        """Theirs."""

    @property
    def first_left(self) -> Position:
        """The first of them, or the next that will be stored."""


class StoredSubscription(TopicSubscription, Protocol):
    """A subscription of a topic whose messages are stored."""

    @property
    def internal(self) -> bool:
        """True if its cursor says what the broker itself has done: it moves as that goes on."""

    @property
    def cursor(self) -> SubscriptionCursor:
        """Knows what is acknowledged."""

    def unused_for(self, seconds: float) -> bool:
        """Tell whether it is durable and nobody consumed it for longer than a time."""

    def skip(self, entries: int) -> None:
        """Acknowledge the next entries."""

    async def expire_older(self, than_ms: int) -> int:
        """Acknowledge the entries that were published before a moment; return how many."""


class AnySubscriptions(Protocol):
    """The subscriptions of any topic, as far as their topic needs them.

    Attributes:
        gone: What was sent by those that are no more; True: by the broker's own.
    """

    gone: dict[bool, Sent]

    async def open(self, asked: pb.CommandSubscribe, host: str, /) -> Any:  # noqa: ANN401
        """Return the subscription that a client on a host names."""

    def __iter__(self) -> Iterator[TopicSubscription]: ...

    def __len__(self) -> int: ...

    @property
    def consumer_count(self) -> int:
        """Consumers of all subscriptions."""

    def sent(self) -> Mapping[bool, Sent]:
        """Return what was sent since the topic was loaded; True: by the broker's own."""

    def close_consumers(self, new_owner: ServerUrls = NO_URLS) -> None:
        """Close all consumers at the broker's wish."""

    def get(self, name: str) -> TopicSubscription | None:
        """Return a subscription; None if there is none."""

    def close(self) -> None:
        """End their timers; nothing is saved."""

    def policies_changed(self) -> None:
        """Follow the topic's policies."""

    def update_rates(self, seconds: float) -> None:
        """End a period of the statistics."""


class TopicSubscriptions(AnySubscriptions, Protocol):
    """The subscriptions of a topic whose messages are stored."""

    def __iter__(self) -> Iterator[StoredSubscription]: ...

    def create(
        self, name: str, *, earliest: bool = False, properties: Mapping[str, str] | None = None
    ) -> StoredSubscription:
        """Create a durable subscription behind the last entry, or at the first."""

    def moved(self) -> None:
        """Drop ledgers that nobody needs any more, as far as retention allows."""

    @property
    def slowest(self) -> Position:
        """The first entry that a subscription still needs."""

    def entries_added(self) -> None:
        """Entries were stored: dispatch them."""

    def terminated(self) -> None:
        """No more entries will come."""

    def save(self) -> None:
        """Keep all cursors in the ledger."""

    def forget(self) -> None:
        """Free what cursors keep, a little at a time: the topic is not loaded any more."""

    def clear_backlogs(self, *, internal: bool) -> None:
        """Move all cursors to the end, those of the broker itself only if they are meant too."""


class DirectSubscriptions(AnySubscriptions, Protocol):
    """The subscriptions of a topic that stores nothing."""

    def publish(self, entry: Entry) -> None:
        """Hand an entry to those consumers that have permits for it."""
