"""The parts of subscriptions used by topics and their monitors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from server.configuration.addresses import NO_URLS, ServerUrls

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    import proto.PulsarApi_pb2 as pb
    from broker.messages.entry import Entry
    from broker.messages.position import Position


class Sent(NamedTuple):
    """Messages sent to consumers, redelivered included, and bytes."""

    messages: int = 0
    size_bytes: int = 0


class TopicConsumer(Protocol):
    """The part of a consumer used by the topic."""

    @property
    def takes_any_schema(self) -> bool:
        """True if the consumer reads any schema (AUTO_CONSUME)."""


class TopicSubscription(Protocol):
    """The part of a subscription used by the topic.

    Attributes:
        name: The subscription's name.
        consumers: The connected consumers.
    """

    @property
    def name(self) -> str:
        """The subscription's name."""

    @property
    def consumers(self) -> Collection[TopicConsumer]:
        """The connected consumers."""

    def delete(self) -> None:
        """Close all consumers, and delete the cursor."""


class SubscriptionCursor(Protocol):
    """The part of a cursor used by the topic."""

    @property
    def backlog(self) -> int:
        """Unacknowledged entries."""

    @property
    def backlog_bytes(self) -> int:
        """Bytes of the unacknowledged entries."""

    @property
    def first_left(self) -> Position:
        """The first unacknowledged entry, or the position of the next new entry."""


class StoredSubscription(TopicSubscription, Protocol):
    """A subscription of a topic with stored messages."""

    @property
    def internal(self) -> bool:
        """True for a cursor of the broker's own work, moved by that work."""

    @property
    def cursor(self) -> SubscriptionCursor:
        """The subscription's cursor."""

    def unused_for(self, seconds: float) -> bool:
        """Return True for a durable subscription without consumers for longer than a time."""

    def skip(self, entries: int) -> None:
        """Acknowledge the next entries."""

    async def expire_older(self, than_ms: int) -> int:
        """Acknowledge the entries published before a moment; return the number."""


class AnySubscriptions(Protocol):
    """The subscriptions of any topic, as used by the topic.

    Attributes:
        gone: Messages sent by past subscriptions; True: by the broker's own.
    """

    gone: dict[bool, Sent]

    async def open(self, asked: pb.CommandSubscribe, host: str, /) -> Any:  # noqa: ANN401
        """Return the subscription named by a client on a host."""

    def __iter__(self) -> Iterator[TopicSubscription]: ...

    def __len__(self) -> int: ...

    @property
    def consumer_count(self) -> int:
        """Consumers of all subscriptions."""

    def sent(self) -> Mapping[bool, Sent]:
        """Return the messages sent since the topic was loaded; True: by the broker's own."""

    def close_consumers(self, new_owner: ServerUrls = NO_URLS) -> None:
        """Close all consumers at the broker's initiative."""

    def get(self, name: str) -> TopicSubscription | None:
        """Return a subscription; None if unknown."""

    def close(self) -> None:
        """Stop timers; saves no state."""

    def policies_changed(self) -> None:
        """Follow the topic's policies."""

    def update_rates(self, seconds: float) -> None:
        """End a period of the statistics."""


class TopicSubscriptions(AnySubscriptions, Protocol):
    """The subscriptions of a topic with stored messages."""

    def __iter__(self) -> Iterator[StoredSubscription]: ...

    def create(
        self, name: str, *, earliest: bool = False, properties: Mapping[str, str] | None = None
    ) -> StoredSubscription:
        """Create a durable subscription behind the last entry, or at the first."""

    def moved(self) -> None:
        """Drop unneeded ledgers, as far as retention allows."""

    @property
    def slowest(self) -> Position:
        """The first entry still needed by a subscription."""

    def entries_added(self) -> None:
        """Dispatch newly stored entries."""

    def terminated(self) -> None:
        """Notify consumers of the topic's termination."""

    def save(self) -> None:
        """Store all cursors in the ledger."""

    def forget(self) -> None:
        """Free the memory of cursors in steps, after the topic is unloaded."""

    def clear_backlogs(self, *, internal: bool) -> None:
        """Move all cursors to the end; the broker's own only with ``internal``."""


class DirectSubscriptions(AnySubscriptions, Protocol):
    """The subscriptions of a topic without stored messages."""

    def publish(self, entry: Entry) -> None:
        """Send an entry to the consumers with permits."""
