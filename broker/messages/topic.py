"""A loaded topic: its producers, its subscriptions, and its messages in a ledger."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from broker.messages.entry import Entry
from broker.messages.errors import quota_exceeded, terminated
from broker.messages.managed_ledger import MessageStoreError, MessageStoreFullError
from broker.messages.producers import Producers
from broker.messages.publishing.entry_sizes import EntrySizes
from broker.messages.publishing.statistics import PublishStatistics
from server.configuration.common import Profile

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    import proto.PulsarApi_pb2 as pb
    from broker.configuration.config import BrokerConfig
    from broker.messages.managed_ledger import ManagedLedger
    from broker.messages.metadata import MessageDigest
    from broker.messages.position import Position
    from broker.messages.producer import Producer
    from broker.policies.effective import EffectivePolicies
    from limiter.clock import Clock
    from proto.names import TopicName

logger = logging.getLogger(__name__)

EPOCH_PROPERTY, TERMINATED_PROPERTY = "topic_epoch", "terminated"
"""Names under which a ledger keeps the topic epoch, and that the topic is terminated."""


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


class AnySubscriptions(Protocol):
    """The subscriptions of any topic, as far as their topic needs them."""

    async def open(self, asked: pb.CommandSubscribe) -> Any:  # noqa: ANN401 - of another folder
        """Return the subscription that a client names."""

    def __iter__(self) -> Iterator[TopicSubscription]: ...

    def __len__(self) -> int: ...

    @property
    def consumer_count(self) -> int:
        """Consumers of all subscriptions."""

    def close_consumers(self) -> None:
        """Close all consumers at the broker's wish."""

    def policies_changed(self) -> None:
        """Follow the topic's policies."""


class TopicSubscriptions(AnySubscriptions, Protocol):
    """The subscriptions of a topic whose messages are stored."""

    @property
    def slowest(self) -> Position:
        """The first entry that a subscription still needs."""

    def entries_added(self) -> None:
        """Entries were stored: dispatch them."""

    def terminated(self) -> None:
        """No more entries will come."""

    def save(self) -> None:
        """Keep all cursors in the ledger."""

    def clear_backlogs(self) -> None:
        """Move all cursors to the end."""


class DirectSubscriptions(AnySubscriptions, Protocol):
    """The subscriptions of a topic that stores nothing."""

    def publish(self, entry: Entry) -> None:
        """Hand an entry to those consumers that have permits for it."""


@dataclass(frozen=True, slots=True)
class TopicContext:
    """The parts of the broker that its topics work with.

    Attributes:
        policies_of: Returns the policies in force for a topic.
        broken: Told of a topic whose ledger failed: it must be unloaded.
    """

    config: BrokerConfig
    clock: Clock
    policies_of: Callable[[TopicName], EffectivePolicies]
    broken: Callable[[Topic], object]


class Topic(ABC):
    """A loaded topic.

    Attributes:
        name: Its full name.
        policies: Those in force now.
        producers: Its producers.
        subscriptions: Its subscriptions.
        statistics: What all producers published since it was loaded.
        sizes: How large the entries were.
        terminated: It takes no more messages.
        closing: It is being unloaded or deleted.
        idle_since: The clock's time at which the last producer or consumer had left.
    """

    subscriptions: AnySubscriptions

    def __init__(self, name: TopicName, context: TopicContext, epoch: int | None) -> None:
        self.name = name
        self.full_name = str(name)
        self.config = context.config
        self.clock = context.clock
        self._context = context
        self.policies = context.policies_of(name)
        self.producers = Producers(
            self.full_name,
            epoch,
            self._epoch_changed,
            as_pulsar=context.config.profile is Profile.PULSAR,
        )
        self.statistics = PublishStatistics()
        self.sizes = EntrySizes()
        self.terminated = False
        self.closing = False
        self.idle_since = self.clock.now()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.full_name}>"

    @abstractmethod
    def _epoch_changed(self, epoch: int) -> None:
        """Keep the topic epoch."""

    @abstractmethod
    def publish(
        self,
        producer: Producer,
        sequence_id: int,
        highest_sequence_id: int,
        data: bytes,
        digest: MessageDigest,
    ) -> None:
        """Take a message; its producer is sent the receipt once it is stored.

        Args:
            producer: Its producer.
            sequence_id: The client's number of it.
            highest_sequence_id: Of a batch: the last of its numbers; 0 for none.
            data: Checksum, metadata and payload.
            digest: What of the metadata is kept.
        """

    @property
    def in_use(self) -> bool:
        """True if it has a producer or a consumer."""
        return bool(self.producers or self.producers.waiting or self.subscriptions.consumer_count)

    def producer_left(self, producer: Producer) -> None:
        """Forget a producer."""
        self.producers.left(producer)
        self.idle_since = self.clock.now()

    def policies_changed(self) -> None:
        """Follow the policies in force."""
        self.policies = self._context.policies_of(self.name)
        self.subscriptions.policies_changed()

    def _count(self, producer: Producer, data: bytes, messages: int) -> None:
        size = len(data)
        for counted in (self.statistics, producer.statistics):
            counted.messages += messages
            counted.size_bytes += size
        self.sizes.add(size)


class _Pending(NamedTuple):
    """A message that is not stored yet."""

    position: Position
    producer: Producer
    sequence_id: int
    highest_sequence_id: int


class PersistentTopic(Topic):
    """A topic whose messages are stored.

    Attributes:
        ledger: Its messages.
        subscriptions: Its subscriptions.
        full_since: The clock's time at which its store had no room for a message; None if it has.

    Source: upstream PersistentTopic.
    """

    subscriptions: TopicSubscriptions

    def __init__(
        self,
        name: TopicName,
        context: TopicContext,
        ledger: ManagedLedger,
        subscriptions_of: Callable[[PersistentTopic], TopicSubscriptions],
    ) -> None:
        epoch = ledger.properties.get(EPOCH_PROPERTY)
        super().__init__(name, context, None if epoch is None else int(epoch))
        self.ledger = ledger
        self.terminated = TERMINATED_PROPERTY in ledger.properties
        self.full_since: float | None = None
        self._pending: deque[_Pending] = deque()
        self._confirmed = ledger.last_confirmed
        self._appending = False
        self._telling = False
        ledger.listener = self
        self.subscriptions = subscriptions_of(self)

    def _epoch_changed(self, epoch: int) -> None:
        self.ledger.set_property(EPOCH_PROPERTY, str(epoch))

    # -- publishing ---------------------------------------------------------------------------

    def publish(
        self,
        producer: Producer,
        sequence_id: int,
        highest_sequence_id: int,
        data: bytes,
        digest: MessageDigest,
    ) -> None:
        """Store a message; its producer is sent the receipt once it is stored."""
        self._appending = True
        try:
            position = self.ledger.append(data, digest)
        except MessageStoreFullError as error:
            self._full(error)
            return
        except MessageStoreError as error:
            self.failed(error)
            return
        finally:
            self._appending = False
        producer.pending += 1
        self._count(producer, data, digest.message_count)
        self._pending.append(_Pending(position, producer, sequence_id, highest_sequence_id))
        self._settle()

    def confirmed(self, last: Position) -> None:
        """Send the receipts up to here, and have the entries dispatched when the turn ends."""
        self._confirmed = last
        if not self._telling:
            # Before the first receipt asks for the same: then both leave in one write.
            self._telling = True
            asyncio.get_running_loop().call_soon(self._tell)
        if not self._appending:
            self._settle()

    def _settle(self) -> None:
        pending, confirmed = self._pending, self._confirmed
        while pending and pending[0].position <= confirmed:
            (ledger_id, entry_id), producer, sequence_id, highest = pending.popleft()
            producer.received(sequence_id, ledger_id, entry_id, highest)
            producer.settled()

    def _tell(self) -> None:
        self._telling = False
        if not self.closing:
            self.subscriptions.entries_added()

    def failed(self, error: MessageStoreError) -> None:
        """Have the topic unloaded: its clients come back, and send again what was not stored."""
        logger.warning("unloading %s, whose messages cannot be stored: %s", self.name, error)
        self._forget_pending()
        self._context.broken(self)

    def _forget_pending(self) -> None:
        pending, self._pending = self._pending, deque()
        for lost in pending:
            lost.producer.settled()

    def _full(self, error: MessageStoreFullError) -> None:
        """Close the producers: they come back, and are refused while there is no room."""
        if self.full_since is None:
            logger.warning("%s takes no more messages: %s", self.name, error)
        self.full_since = self.clock.now()
        self.producers.disconnect(quota_exceeded(hold=True))

    # -- its life -----------------------------------------------------------------------------

    def terminate(self) -> None:
        """Take no more messages."""
        if not self.terminated:
            self.terminated = True
            self.ledger.set_property(TERMINATED_PROPERTY, "true")
            self.subscriptions.terminated()
            self.producers.disconnect(terminated())

    def truncate(self) -> None:
        """Forget the backlogs, and drop what is in closed ledgers."""
        self.subscriptions.clear_backlogs()
        self.ledger.truncate()


class NonPersistentTopic(Topic):
    """A topic that hands a message to those who have permits for it, and keeps nothing.

    Source: upstream NonPersistentTopic.
    """

    subscriptions: DirectSubscriptions

    def __init__(
        self,
        name: TopicName,
        context: TopicContext,
        subscriptions_of: Callable[[NonPersistentTopic], DirectSubscriptions],
    ) -> None:
        super().__init__(name, context, None)
        self.subscriptions = subscriptions_of(self)

    def _epoch_changed(self, epoch: int) -> None:
        """Keep nothing: nothing of this topic is stored."""

    def publish(
        self,
        producer: Producer,
        sequence_id: int,
        highest_sequence_id: int,
        data: bytes,
        digest: MessageDigest,
    ) -> None:
        """Hand a message on; its receipt always names (0, 0)."""
        self._count(producer, data, digest.message_count)
        producer.received(sequence_id, 0, 0, highest_sequence_id)
        self.subscriptions.publish(Entry(0, 0, data, digest))
