"""The choice of a consumer for a message of a non-persistent topic."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import insort
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.messages.metadata import key_of
from broker.messages.subscriptions.dispatchers.key_shared import check_mode
from broker.messages.subscriptions.dispatchers.single_active import active_of, rank
from server.connection.request_errors import RequestError

if TYPE_CHECKING:
    from broker.messages.entry import Entry
    from broker.messages.subscriptions.consumer import Consumer
    from broker.messages.subscriptions.context import SubscriptionRules
    from proto.names import TopicName

SubType = pb.CommandSubscribe.SubType


class DirectDispatcher(ABC):
    """The base class of objects that choose one consumer of a subscription for each entry.

    Upstream's class is NonPersistentDispatcher.

    Attributes:
        consumers: The connected consumers.
    """

    def __init__(self) -> None:
        self.consumers: list[Consumer] = []

    def add(self, consumer: Consumer) -> None:
        """Add a newly connected consumer.

        Raises:
            RequestError: The consumer does not fit the subscription.
        """
        self.consumers.append(consumer)

    def remove(self, consumer: Consumer) -> None:
        """Remove a disconnected consumer."""
        self.consumers.remove(consumer)

    @abstractmethod
    def choose(self, entry: Entry) -> Consumer | None:
        """Return the consumer to which an entry is sent; None if no consumer can receive it."""


class DirectSingleActive(DirectDispatcher):
    """Chooses the only consumer of an Exclusive subscription, while the consumer has permits."""

    def add(self, consumer: Consumer) -> None:
        """Add the subscription's only consumer.

        Raises:
            RequestError: A consumer is connected already.
        """
        if self.consumers:
            raise RequestError(pb.ConsumerBusy, "Exclusive consumer is already connected")
        super().add(consumer)

    def choose(self, _: Entry) -> Consumer | None:
        """Return the only consumer if it has permits, else None."""
        return _with_room(self.consumers[0]) if self.consumers else None


class DirectFailover(DirectDispatcher):
    """Chooses the active consumer of a Failover subscription, while the consumer has permits.

    A new active consumer receives entries immediately, and is not notified. Only an arriving
    standby consumer is notified (recorded).
    """

    def __init__(self, topic: TopicName) -> None:
        super().__init__()
        self._topic = topic
        self._active: Consumer | None = None
        self._ranked: list[Consumer] = []

    def add(self, consumer: Consumer) -> None:
        """Add a consumer, and choose the active consumer again."""
        super().add(consumer)
        insort(self._ranked, consumer, key=rank)
        before = self._active
        self._choose_active()
        if self._active is before:
            consumer.tell_active(is_active=False)

    def remove(self, consumer: Consumer) -> None:
        """Remove a consumer, and choose the active consumer again if the choice may change."""
        super().remove(consumer)
        self._ranked.remove(consumer)
        if consumer is self._active or self._topic.partition_index >= 0:
            self._choose_active()

    def _choose_active(self) -> None:
        consumers = self._ranked
        self._active = consumers[active_of(consumers, self._topic)] if consumers else None

    def choose(self, _: Entry) -> Consumer | None:
        """Return the active consumer if it has permits, else None."""
        return _with_room(self._active)


class DirectShared(DirectDispatcher):
    """Chooses the next consumer of a Shared subscription that has permits.

    Consumers of higher priority levels come first.
    """

    def __init__(self) -> None:
        super().__init__()
        # None: to be rebuilt. With 1,000 consumers rebuilding takes time, and many leave together.
        self._levels: list[list[Consumer]] | None = None

    def add(self, consumer: Consumer) -> None:
        """Add a consumer after the other consumers of its priority level."""
        super().add(consumer)
        self._levels = None

    def remove(self, consumer: Consumer) -> None:
        """Remove a disconnected consumer."""
        super().remove(consumer)
        self._levels = None

    def _sorted(self) -> list[list[Consumer]]:
        levels: dict[int, list[Consumer]] = {}
        for consumer in self.consumers:
            levels.setdefault(consumer.priority_level, []).append(consumer)
        return [levels[level] for level in sorted(levels)]

    def choose(self, _: Entry) -> Consumer | None:
        """Return the next consumer with permits, or None."""
        if self._levels is None:
            self._levels = self._sorted()
        for members in self._levels:
            for at, consumer in enumerate(members):
                if consumer.waits is None:
                    # Move the chosen consumer and all skipped consumers to the end.
                    members[:] = members[at + 1 :] + members[: at + 1]
                    return consumer
        return None


class DirectKeyShared(DirectDispatcher):
    """Chooses the owner of the entry's key in a Key_Shared subscription, if it has permits.

    If the owner has no permits, the entry is lost.
    """

    def __init__(self, meta: pb.KeySharedMeta, rules: SubscriptionRules) -> None:
        super().__init__()
        self._mode = meta.keySharedMode
        self.ring = rules.nobodys_hashes(self._mode)

    def add(self, consumer: Consumer) -> None:
        """Add a consumer of the same Key_Shared mode, and assign keys to it.

        Raises:
            RequestError: The mode differs, or another consumer owns requested hash ranges.
        """
        check_mode(self._mode, consumer.options.key_shared.keySharedMode)
        consumer.take_hashes(self.ring)
        super().add(consumer)

    def remove(self, consumer: Consumer) -> None:
        """Remove a consumer, and release its keys."""
        super().remove(consumer)
        self.ring.remove(consumer)

    def choose(self, entry: Entry) -> Consumer | None:
        """Return the consumer that owns the entry's key if it has permits, else None."""
        key = key_of(entry.data)
        return _with_room(self.ring.select(self.ring.hash_of(key)))


def dispatcher_of(
    sub_type: SubType.ValueType,
    topic: TopicName,
    meta: pb.KeySharedMeta,
    rules: SubscriptionRules,
) -> DirectDispatcher:
    """Return a new dispatcher, without consumers, for a subscription type."""
    if sub_type == pb.CommandSubscribe.Exclusive:
        return DirectSingleActive()
    if sub_type == pb.CommandSubscribe.Failover:
        return DirectFailover(topic)
    if sub_type == pb.CommandSubscribe.Shared:
        return DirectShared()
    return DirectKeyShared(meta, rules)


def _with_room(consumer: Consumer | None) -> Consumer | None:
    return consumer if consumer is not None and consumer.waits is None else None
