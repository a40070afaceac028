"""The choice of who hears a message of a topic that stores nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import insort
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.subscriptions.failover import active_of, rank
from broker.subscriptions.key_shared.fixed_ranges import FixedRanges
from broker.subscriptions.key_shared.sticky_key import key_of
from server.connection.request_errors import RequestError

if TYPE_CHECKING:
    from broker.messages.entry import Entry
    from broker.subscriptions.consumer import Consumer
    from broker.subscriptions.context import SubscriptionRules
    from proto.names import TopicName

SubType = pb.CommandSubscribe.SubType


class DirectDispatcher(ABC):
    """Chooses among the consumers of one subscription (upstream: NonPersistentDispatcher).

    Attributes:
        consumers: Those that are connected.
    """

    def __init__(self) -> None:
        self.consumers: list[Consumer] = []

    def add(self, consumer: Consumer) -> None:
        """Take a consumer.

        Raises:
            RequestError: It cannot be one of these.
        """
        self.consumers.append(consumer)

    def remove(self, consumer: Consumer) -> None:
        """Let a consumer go."""
        self.consumers.remove(consumer)

    @abstractmethod
    def choose(self, entry: Entry) -> Consumer | None:
        """Return who hears an entry; None if nobody has room who could."""


class DirectSingleActive(DirectDispatcher):
    """Exclusive: the only consumer hears everything that it has room for."""

    def add(self, consumer: Consumer) -> None:
        """Take the only consumer.

        Raises:
            RequestError: There is one.
        """
        if self.consumers:
            raise RequestError(pb.ConsumerBusy, "Exclusive consumer is already connected")
        super().add(consumer)

    def choose(self, _: Entry) -> Consumer | None:
        """Return the consumer if it has room."""
        return _with_room(self.consumers[0]) if self.consumers else None


class DirectFailover(DirectDispatcher):
    """Failover: one of them hears everything, at once when it is chosen; nobody is told of that.

    Only who comes and changes nothing hears that it is not the one (recorded).
    """

    def __init__(self, topic: TopicName) -> None:
        super().__init__()
        self._topic = topic
        self._active: Consumer | None = None
        self._ranked: list[Consumer] = []

    def add(self, consumer: Consumer) -> None:
        """Take a consumer, and choose again."""
        super().add(consumer)
        insort(self._ranked, consumer, key=rank)
        before = self._active
        self._choose_active()
        if self._active is before:
            consumer.tell_active(is_active=False)

    def remove(self, consumer: Consumer) -> None:
        """Let a consumer go, and choose again: without partitions only if it was the active one."""
        super().remove(consumer)
        self._ranked.remove(consumer)
        if consumer is self._active or self._topic.partition_index >= 0:
            self._choose_active()

    def _choose_active(self) -> None:
        consumers = self._ranked
        self._active = consumers[active_of(consumers, self._topic)] if consumers else None

    def choose(self, _: Entry) -> Consumer | None:
        """Return the active consumer if it has room."""
        return _with_room(self._active)


class DirectShared(DirectDispatcher):
    """Shared: each entry goes to the next one that has room, those of a higher level first."""

    def __init__(self) -> None:
        super().__init__()
        # None: to be made anew. With 1,000 consumers that takes a moment, and many leave at once.
        self._levels: list[list[Consumer]] | None = None

    def add(self, consumer: Consumer) -> None:
        """Take a consumer; it has its turn behind those that are there."""
        super().add(consumer)
        self._levels = None

    def remove(self, consumer: Consumer) -> None:
        """Let a consumer go."""
        super().remove(consumer)
        self._levels = None

    def _sorted(self) -> list[list[Consumer]]:
        levels: dict[int, list[Consumer]] = {}
        for consumer in self.consumers:
            levels.setdefault(consumer.priority_level, []).append(consumer)
        return [levels[level] for level in sorted(levels)]

    def choose(self, _: Entry) -> Consumer | None:
        """Return the next consumer that has room."""
        if self._levels is None:
            self._levels = self._sorted()
        for members in self._levels:
            for at, consumer in enumerate(members):
                if consumer.takes_messages:
                    # It and those that had no room come last next time.
                    members[:] = members[at + 1 :] + members[: at + 1]
                    return consumer
        return None


class DirectKeyShared(DirectDispatcher):
    """Key_Shared: each key has one consumer; while that has no room, messages of it are lost."""

    def __init__(self, meta: pb.KeySharedMeta | None, rules: SubscriptionRules) -> None:
        super().__init__()
        self._mode = (meta or pb.KeySharedMeta()).keySharedMode
        self.ring = rules.nobodys_hashes(self._mode)

    def add(self, consumer: Consumer) -> None:
        """Take a consumer of the same mode.

        Raises:
            RequestError: It is of another mode, or its ranges are another one's.
        """
        meta = consumer.options.key_shared or pb.KeySharedMeta()
        if meta.keySharedMode != self._mode:
            ours, theirs = (pb.KeySharedMode.Name(one) for one in (self._mode, meta.keySharedMode))
            raise RequestError(
                pb.ConsumerBusy,
                "Subscription is of different type. Active subscription key_shared mode of "
                f"'{ours}' is different than the connecting consumer's key_shared mode '{theirs}'.",
            )
        if isinstance(self.ring, FixedRanges):
            self.ring.add(consumer, [(one.start, one.end) for one in meta.hashRanges])
        else:
            self.ring.add(consumer)
        super().add(consumer)

    def remove(self, consumer: Consumer) -> None:
        """Let a consumer go; its keys go to others."""
        super().remove(consumer)
        self.ring.remove(consumer)

    def choose(self, entry: Entry) -> Consumer | None:
        """Return the consumer of the entry's key if it has room."""
        key = key_of(entry.data)
        return _with_room(self.ring.select(self.ring.hash_of(key)))


def dispatcher_of(
    sub_type: SubType.ValueType,
    topic: TopicName,
    meta: pb.KeySharedMeta | None,
    rules: SubscriptionRules,
) -> DirectDispatcher:
    """Return a dispatcher without consumers for a type of subscription."""
    if sub_type == pb.CommandSubscribe.Exclusive:
        return DirectSingleActive()
    if sub_type == pb.CommandSubscribe.Failover:
        return DirectFailover(topic)
    if sub_type == pb.CommandSubscribe.Shared:
        return DirectShared()
    return DirectKeyShared(meta, rules)


def _with_room(consumer: Consumer | None) -> Consumer | None:
    return consumer if consumer is not None and consumer.takes_messages else None
