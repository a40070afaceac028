"""A loaded topic: its producers, its subscriptions, and its messages in a ledger."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import proto.PulsarApi_pb2 as pb
from broker.messages.backlog_quota import check_quota, evict_oldest
from broker.messages.compaction.topic_compaction import TopicCompaction
from broker.messages.deduplication import Deduplication, Verdict, highest_of
from broker.messages.entry import Entry
from broker.messages.errors import quota_exceeded, terminated
from broker.messages.managed_ledger import MessageStoreError, MessageStoreFullError
from broker.messages.producers import Producers
from broker.messages.publishing.entry_sizes import EntrySizes
from broker.messages.publishing.latency import PublishLatency
from broker.messages.publishing.publish_times import PublishTimes
from broker.messages.publishing.statistics import PublishStatistics
from broker.messages.publishing.throttling import PublishRate
from broker.messages.stores.unneeded import drop_unneeded
from broker.policies.effective import QuotaAction
from server.configuration.common import Profile

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.configuration.config import BrokerConfig
    from broker.messages.managed_ledger import ManagedLedger
    from broker.messages.metadata import MessageDigest
    from broker.messages.position import Position
    from broker.messages.producer import Producer
    from broker.messages.subscribed import (
        AnySubscriptions,
        DirectSubscriptions,
        TopicSubscriptions,
    )
    from broker.policies.effective import EffectivePolicies
    from limiter.clock import Clock
    from proto.names import TopicName
    from server.connection.request_errors import RequestError

logger = logging.getLogger(__name__)

EPOCH_PROPERTY, TERMINATED_PROPERTY = "topic_epoch", "terminated"
"""Names under which a ledger keeps the topic epoch, and that the topic is terminated."""
CREATED_PROPERTY = "created_at"
"""The name under which a ledger keeps when the topic was first loaded, in ms since 1970."""
MADE_BY_USE_PROPERTY = "made_by_use"
"""Name under which it keeps that the topic was not imported."""
FULL_SECONDS = 1.0
"""How long producers are refused after the store had no room for a message."""
_UNKNOWN_STATUS = "the message was sent before, and whether it is stored is not known yet"


@dataclass(frozen=True, slots=True)
class TopicContext:
    """The parts of the broker that its topics work with.

    Attributes:
        policies_of: Returns the policies in force for a topic.
        broken: Told of a topic whose ledger failed: it must be unloaded.
        make_room: Has messages of other topics dropped that nobody needs.
    """

    config: BrokerConfig
    clock: Clock
    policies_of: Callable[[TopicName], EffectivePolicies]
    broken: Callable[[Topic], object]
    make_room: Callable[[], object] = lambda: None


class Topic(ABC):
    """A loaded topic.

    Attributes:
        name: Its full name.
        policies: Those in force now.
        producers: Its producers.
        subscriptions: Its subscriptions.
        statistics: What all producers published since it was loaded.
        sizes: How large the entries were.
        latency: How long messages took to be stored.
        evictions: How often messages were skipped because a backlog quota was exceeded, by the
            quota: "size" or "time".
        terminated: It takes no more messages.
        closing: It is being unloaded or deleted.
        idle_since: The clock's time at which the last producer had left, or a monitor last saw
            a client.
        made_by_use: It was not imported: a monitor may delete it when nobody uses it any more.
        rate: Its publish rate.
        read_rate: Entries a second that had to be fetched from the store, in the period that ended
            last (upstream: storageReadRate, which does not count what a cache has either).
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
        self.latency = PublishLatency()
        self.evictions = {"size": 0, "time": 0}
        self.terminated = False
        self.closing = False
        self.made_by_use = False
        self.idle_since = self.clock.now()
        self.rate = PublishRate(self.policies.publish_rate, self.clock)
        self.read_rate = 0.0

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
        *,
        whole: bool = True,
    ) -> None:
        """Take a message; its producer is sent the receipt once it is stored.

        Args:
            producer: Its producer.
            sequence_id: The client's number of it.
            highest_sequence_id: Of a batch: the last of its numbers; -1 for none.
            data: Checksum, metadata and payload.
            digest: What of the metadata is kept.
            whole: It is no chunk, or the last of its message.
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
        self.rate.change(self.policies.publish_rate)
        self.subscriptions.policies_changed()

    def update_rates(self, seconds: float) -> None:
        """End a period of the statistics."""
        self.statistics.period_ended(seconds)
        self.sizes.period_ended()
        self.latency.period_ended()
        for producer in self.producers:
            producer.statistics.period_ended(seconds)
        self.subscriptions.update_rates(seconds)

    def _count(self, producer: Producer, size: int, messages: int) -> None:
        for counted in (self.statistics, producer.statistics):
            counted.messages += messages
            counted.size_bytes += size
        self.sizes.add(size)
        if self.rate.limits:
            self.rate.published(producer.cnx.publishes, messages, size)
        producer.cnx.publishes.published(messages, size)


class _Pending(NamedTuple):
    """A message that is not stored yet.

    Attributes:
        deduplicated: Its highest sequence id is kept once it is stored.
        begun_at: The clock's time.
    """

    position: Position
    producer: Producer
    sequence_id: int
    highest_sequence_id: int
    size_bytes: int
    deduplicated: bool
    begun_at: float


class PersistentTopic(Topic):
    """A topic whose messages are stored.

    Attributes:
        ledger: Its messages.
        subscriptions: Its subscriptions.
        deduplication: Its producers' sequence ids.
        created_at: When it was first loaded, in ms since 1970.
        publish_times: Those of its messages.
        full_since: The clock's time at which its store last had no room for a message; None if it
            always had.

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
        self.made_by_use = MADE_BY_USE_PROPERTY in ledger.properties
        self.created_at = self._created_at()
        self.publish_times = PublishTimes(self.clock)
        self.full_since: float | None = None
        self._full_error = ""
        self._seen_fetched = 0
        config = context.config.publishing
        self.deduplication = Deduplication(
            ledger,
            config.dedup_entries_interval,
            config.dedup_max_producers,
            counts_parts=context.config.profile is Profile.PULSAR,
        )
        self._pending: deque[_Pending] = deque()
        self._confirmed = ledger.last_confirmed
        self._appending = False
        self._telling = False
        ledger.listener = self
        self.compaction = TopicCompaction(self)
        self.subscriptions = subscriptions_of(self)

    def _created_at(self) -> int:
        found = self.ledger.properties.get(CREATED_PROPERTY)
        if found is None:
            found = str(self.clock.wall_ms())
            self.ledger.set_property(CREATED_PROPERTY, found)
        return int(found)

    async def recover(self) -> None:
        """Read what has to be known before the first producer comes."""
        last = await self.ledger.entry(self.ledger.last_confirmed)
        if last is not None:
            self.publish_times.last = self.publish_times.next(last.publish_time)
        await self.deduplication.recover(on=self.policies.deduplication)
        self.compaction.keep_for_later()

    def mark_made_by_use(self) -> None:
        """Keep that it was not imported."""
        self.made_by_use = True
        self.ledger.set_property(MADE_BY_USE_PROPERTY, "true")

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
        *,
        whole: bool = True,
    ) -> None:
        """Store a message; its producer is sent the receipt once it is stored."""
        deduplicated = whole and self.deduplication.enabled
        if deduplicated and not self._is_new(producer, sequence_id, highest_sequence_id):
            return
        published = self.publish_times.next(digest.publish_time)
        if published != digest.publish_time:
            digest = digest._replace(publish_time=published)
        position = self._append(data, digest)
        if position is None:
            return
        if deduplicated:
            highest = highest_of(sequence_id, highest_sequence_id)
            self.deduplication.begun(producer.name, highest)
        size = len(data)
        if position <= self._confirmed and not self._pending:
            # In memory, as mostly: nothing to wait for.
            if deduplicated:
                self._keep_sequence_id(producer, sequence_id, highest_sequence_id, position)
            ledger_id, entry_id = position
            producer.received(sequence_id, ledger_id, entry_id, highest_sequence_id)
            self.latency.observe(0.0)
        else:
            producer.pending += 1
            producer.cnx.publishes.begun(size)
            now, highest = self.clock.now(), highest_sequence_id
            pending = _Pending(position, producer, sequence_id, highest, size, deduplicated, now)
            self._pending.append(pending)
            self._settle()
        self.publish_times.last = published
        self._count(producer, size, digest.message_count)

    def _append(self, data: bytes, digest: MessageDigest) -> Position | None:
        """Store an entry; None if that failed, which the producers hear."""
        self._appending = True
        try:
            return self._append_in_room(data, digest)
        except MessageStoreFullError as error:
            self._full(error)
        except MessageStoreError as error:
            self.failed(error)
        finally:
            self._appending = False
        return None

    def _append_in_room(self, data: bytes, digest: MessageDigest) -> Position:
        """Store an entry; where there is no room, drop what nobody needs, or what policies say."""
        for make_room in (self._drop_unneeded, self._context.make_room, self._evict):
            try:
                return self.ledger.append(data, digest)
            except MessageStoreFullError:
                make_room()
        return self.ledger.append(data, digest)

    def _drop_unneeded(self) -> None:
        drop_unneeded(self)

    def _evict(self) -> None:
        evict_oldest(self)

    def _is_new(self, producer: Producer, sequence_id: int, highest_sequence_id: int) -> bool:
        """Judge a message by its number; one that is not new is answered."""
        verdict = self.deduplication.judge(producer.name, sequence_id)
        if verdict is Verdict.DUPLICATE:
            producer.received(sequence_id, -1, -1, highest_sequence_id)
        elif verdict is Verdict.UNKNOWN:
            producer.refused(sequence_id, pb.PersistenceError, _UNKNOWN_STATUS)
        return verdict is Verdict.NEW

    def _keep_sequence_id(
        self, producer: Producer, sequence_id: int, highest_sequence_id: int, position: Position
    ) -> None:
        highest = highest_of(sequence_id, highest_sequence_id)
        self.deduplication.stored(producer.name, highest, position)

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
        if not pending or pending[0].position > confirmed:
            return
        now = self.clock.now()
        while pending and pending[0].position <= confirmed:
            one = pending.popleft()
            (ledger_id, entry_id), producer = one.position, one.producer
            if one.deduplicated:
                self._keep_sequence_id(
                    producer, one.sequence_id, one.highest_sequence_id, one.position
                )
            if not producer.gone:
                producer.received(one.sequence_id, ledger_id, entry_id, one.highest_sequence_id)
            self.latency.observe(now - one.begun_at)
            self._let_go(one)

    def _let_go(self, one: _Pending) -> None:
        one.producer.cnx.publishes.ended(one.size_bytes)
        one.producer.settled()

    def _tell(self) -> None:
        self._telling = False
        if not self.closing:
            self.subscriptions.entries_added()

    def failed(self, error: MessageStoreError) -> None:
        """Have the topic unloaded: its clients come back, and send again what was not stored."""
        logger.warning("unloading %s, whose messages cannot be stored: %s", self.name, error)
        self.forget_pending()
        self._context.broken(self)

    def forget_pending(self) -> None:
        """Give up the messages that are not stored: their producers are not told."""
        pending, self._pending = self._pending, deque()
        for lost in pending:
            self._let_go(lost)
        self.deduplication.lost()

    def _full(self, error: MessageStoreFullError) -> None:
        """Close the producers: they come back, and are refused for a while."""
        if not self.full:
            logger.warning("%s takes no more messages: %s", self.name, error)
        self.ledger.refused()
        self.full_since, self._full_error = self.clock.now(), str(error)
        self.producers.disconnect(self._no_room())

    def _no_room(self) -> RequestError:
        hold = self.policies.size_quota.action is not QuotaAction.EXCEPTION
        return quota_exceeded(hold=hold, text=self._full_error)

    @property
    def full(self) -> bool:
        """True if its store had no room for a message a moment ago."""
        since = self.full_since
        return since is not None and self.clock.now() - since < FULL_SECONDS

    def check_room(self) -> None:
        """Refuse a producer while there is no room for what it would send.

        Raises:
            RequestError: The store has no room, or a backlog is above its quota.
        """
        if self.full:
            raise self._no_room()
        check_quota(self)

    # -- its life -----------------------------------------------------------------------------

    def terminate(self) -> None:
        """Take no more messages."""
        if not self.terminated:
            self.terminated = True
            self.ledger.set_property(TERMINATED_PROPERTY, "true")
            self.producers.disconnect(terminated())
            self.subscriptions.terminated()

    def truncate(self) -> None:
        """Forget the backlogs, and drop what is in closed ledgers."""
        self.subscriptions.clear_backlogs(internal=True)
        self.deduplication.save()
        self.ledger.truncate()

    def update_rates(self, seconds: float) -> None:
        """End a period of the statistics."""
        super().update_rates(seconds)
        fetched = self.ledger.fetched_entries
        self.read_rate, self._seen_fetched = (fetched - self._seen_fetched) / seconds, fetched

    def policies_changed(self) -> None:
        """Follow the policies in force."""
        super().policies_changed()
        self.deduplication.switch(on=self.policies.deduplication)
        self.compaction.keep_for_later()


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
        *,
        whole: bool = True,
    ) -> None:
        """Hand a message on; its receipt always names (0, 0)."""
        self._count(producer, len(data), digest.message_count)
        producer.received(sequence_id, 0, 0, highest_sequence_id)
        self.subscriptions.publish(Entry(0, 0, data, digest))
