"""Loaded topics, with their producers and subscriptions, and with messages in a ledger."""

from __future__ import annotations

import asyncio
import logging
from abc import abstractmethod
from collections import deque
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import proto.PulsarApi_pb2 as pb
from broker.messages.backlog_quota import OldestBacklog, check_quota, evict_oldest
from broker.messages.compaction.topic_compaction import TopicCompaction
from broker.messages.deduplication import Deduplication, Verdict, highest_of
from broker.messages.entry import Entry
from broker.messages.errors import (
    MessageStoreError,
    MessageStoreFullError,
    not_stored,
    quota_exceeded,
    terminated,
)
from broker.messages.position import to_wire
from broker.messages.producer import ProducedTopic
from broker.messages.producers import Producers
from broker.messages.publishing.checks import PublishTimes
from broker.messages.publishing.throttling import PublishRate
from broker.messages.statistics import (
    LATENCY_BUCKETS_MS,
    SIZE_BUCKETS,
    Histogram,
    PublishStatistics,
)
from broker.messages.subscriptions.context import SubscriptionRules
from broker.messages.subscriptions.non_persistent.subscriptions import NonPersistentSubscriptions
from broker.messages.subscriptions.subscriptions import Subscriptions
from broker.policies.effective import QuotaAction
from limiter.tasks import BackgroundTasks
from server.configuration.common import Profile
from server.tasks.cooperative import SharedTurns

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.configuration.config import BrokerConfig
    from broker.messages.metadata import MessageDigest
    from broker.messages.position import Position
    from broker.messages.producer import Producer
    from broker.messages.stores.managed_ledger import ManagedLedger
    from broker.messages.subscriptions.by_name import SubscriptionsByName
    from broker.policies.effective import EffectivePolicies
    from limiter.clock import Clock
    from proto.names import TopicName
    from server.connection.request_errors import RequestError

logger = logging.getLogger(__name__)

EPOCH_PROPERTY, TERMINATED_PROPERTY = "topic_epoch", "terminated"
"""Names of the ledger properties for the topic epoch and the termination."""
CREATED_PROPERTY = "created_at"
"""Name of the ledger property for the time of first loading, in ms since 1970."""
MADE_BY_USE_PROPERTY = "made_by_use"
"""Name of the ledger property that marks a topic as not imported."""
FULL_SECONDS = 1.0
"""The seconds for which new producers are refused after the store lacked capacity for a message."""
_UNKNOWN_STATUS = "the message was sent before, and whether it is stored is not known yet"


@dataclass(frozen=True, slots=True)
class TopicContext:
    """The broker's settings and services that its topics use.

    Attributes:
        policies_of: Returns the effective policies of a topic.
        broken: Unloads a topic after its ledger failed.
        woken: Makes periodic work visit a resting topic again.
        make_room: Deletes messages of other topics that no subscription needs.
        rules: The broker's settings for subscriptions.
        turns: Schedules the dispatchers of all topics.
        tasks: Open exclusive producers once their epochs are stored.
    """

    config: BrokerConfig
    clock: Clock
    policies_of: Callable[[TopicName], EffectivePolicies]
    broken: Callable[[Topic], object]
    woken: Callable[[Topic], object] = lambda _: None
    make_room: Callable[[], object] = lambda: None
    rules: SubscriptionRules = field(default_factory=SubscriptionRules)
    turns: SharedTurns = field(default_factory=SharedTurns)
    tasks: BackgroundTasks = field(default_factory=BackgroundTasks)


class Topic(ProducedTopic):
    """A loaded topic, persistent or non-persistent.

    Attributes:
        name: The full name.
        policies: The effective policies.
        producers: The topic's producers.
        subscriptions: The topic's subscriptions.
        statistics: Counts and rates of all producers' messages since the topic was loaded.
        sizes: Histogram of the entries' sizes in bytes.
        latency: Histogram of the times that storing a message takes, in ms.
        evictions: The number of evictions because of exceeded backlog quotas, by quota: "size" or
            "time".
        oldest_backlog: The oldest backlog message at the last check of quotas, if its age is known.
        terminated: True if new messages are refused for ever.
        closing: True if the topic is being unloaded or deleted.
        idle_since: The clock's time when the last producer left, or when a monitor last saw a
            client of the topic.
        rests: True if periodic work skips the topic (see RestingTopics).
        made_by_use: True if the topic was not imported, so that a monitor may delete it when
            unused.
        rate: The publish rate.
        has_chunks: True once chunks were published in a statistics period (msgChunkPublished).
        read_rate: Entries per second fetched from the store, in the last period (upstream:
            storageReadRate, which also excludes cached entries).
    """

    subscriptions: SubscriptionsByName[Any]

    def __init__(self, name: TopicName, context: TopicContext, epoch: int | None) -> None:
        self.name = name
        self.full_name = str(name)
        self.config = context.config
        self.clock = context.clock
        self.rules = context.rules
        self.turns = context.turns
        self._context = context
        self.policies = context.policies_of(name)
        self.producers = Producers(
            self.full_name,
            epoch,
            self._epoch_changed,
            as_pulsar=context.config.profile is Profile.PULSAR,
        )
        self.statistics = PublishStatistics()
        self.sizes = Histogram(SIZE_BUCKETS.values())
        self.latency = Histogram(LATENCY_BUCKETS_MS.values())
        self.evictions = {"size": 0, "time": 0}
        self.oldest_backlog: OldestBacklog | None = None
        self.terminated = False
        self.closing = False
        self.made_by_use = False
        self.idle_since = self.clock.now()
        self.rests = False
        self.rate = PublishRate(self.policies.publish_rate, self.clock)
        self.read_rate = 0.0
        self.has_chunks = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.full_name}>"

    @abstractmethod
    def _epoch_changed(self, epoch: int, maker: Producer | None) -> None:
        """Store a new topic epoch, then open the producer that has made it, if any."""

    @property
    def in_use(self) -> bool:
        """True while the topic has a consumer, or an open or waiting producer."""
        return bool(self.producers or self.producers.waiting or self.subscriptions.consumer_count)

    def touched(self) -> None:
        """Make periodic work visit the topic again, as its state may have changed."""
        if self.rests:
            self._context.woken(self)

    def producer_left(self, producer: Producer) -> None:
        """Remove a closed producer from the topic."""
        self.touched()
        self.producers.left(producer)
        self.idle_since = self.clock.now()

    def policies_changed(self) -> None:
        """Read the topic's changed policies, and apply them."""
        self.touched()
        self.policies = self._context.policies_of(self.name)
        self.rate.change(self.policies.publish_rate)
        self.subscriptions.policies_changed()
        if self.policies.encryption_required:
            self._close_unencrypted()

    def _close_unencrypted(self) -> None:
        for producer in self.producers:
            if not producer.encrypted:
                producer.disconnect()

    def update_rates(self, seconds: float) -> None:
        """Compute the topic's message rates for the statistics period that ends now."""
        self.statistics.period_ended(seconds)
        self.sizes.period_ended()
        self.latency.period_ended()
        for producer in self.producers:
            producer.statistics.period_ended(seconds)
            self.has_chunks |= producer.statistics.chunked_message_rate > 0
        self.subscriptions.update_rates(seconds)

    def _count(self, producer: Producer, size: int, messages: int) -> None:
        """Count a message that arrived, also if it turns out to be a duplicate.

        Source: upstream AbstractTopic.incrementPublishCount.
        """
        for counted in (self.statistics, producer.statistics):
            counted.messages += messages
            counted.size_bytes += size
        self.sizes.add(size)
        if self.rate.limits:
            self.rate.published(producer.cnx.publishes, messages, size)
        producer.cnx.publishes.published(messages, size)


class _Pending(NamedTuple):
    """A published message that is not stored yet.

    Attributes:
        deduplicated: True to record the highest sequence id once the message is stored.
        begun_at: The clock's time when the message was received.
    """

    position: Position
    producer: Producer
    sequence_id: int
    highest_sequence_id: int
    size_bytes: int
    deduplicated: bool
    begun_at: float


class PersistentTopic(Topic):
    """A topic that stores its messages in a ledger.

    Attributes:
        ledger: The ledger with the topic's messages.
        subscriptions: The topic's subscriptions.
        deduplication: The producers' sequence ids.
        created_at: Time of first loading, in ms since 1970.
        publish_times: The messages' publish times.
        full_since: The clock's time when the store last lacked capacity for a message; None if
            never.

    Source: upstream PersistentTopic.
    """

    subscriptions: Subscriptions

    def __init__(self, name: TopicName, context: TopicContext, ledger: ManagedLedger) -> None:
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
        # The exclusive producer whose epoch is being stored.
        self._maker: Producer | None = None
        ledger.listener = self
        self.compaction = TopicCompaction(self)
        self.subscriptions = Subscriptions(self)

    def _created_at(self) -> int:
        found = self.ledger.properties.get(CREATED_PROPERTY)
        if found is None:
            found = str(self.clock.wall_ms())
            self.ledger.set_property(CREATED_PROPERTY, found)
        return int(found)

    async def recover(self) -> None:
        """Restore the stored state that the topic needs before its first producer."""
        last = await self.ledger.entry(self.ledger.last_confirmed)
        if last is not None:
            self.publish_times.last = self.publish_times.next(last.publish_time)
        await self.deduplication.recover(on=self.policies.deduplication)
        self.compaction.keep_for_later()

    def mark_made_by_use(self) -> None:
        """Store that the topic was not imported, so that it may be deleted when unused."""
        self.made_by_use = True
        self.ledger.set_property(MADE_BY_USE_PROPERTY, "true")

    def _epoch_changed(self, epoch: int, maker: Producer | None) -> None:
        self.ledger.set_property(EPOCH_PROPERTY, str(epoch))
        if maker is not None:
            is_storing, self._maker = self._maker is not None, maker
            if not is_storing:
                self._context.tasks.start(self._open_once_stored())

    async def _open_once_stored(self) -> None:
        """Open the newest exclusive producer once its epoch is stored: a kill cannot undo it."""
        stored, failure = None, None
        try:
            while stored is not self._maker:
                stored = self._maker
                await self.ledger.flushed()
        except MessageStoreError as error:
            failure = not_stored(error)
        finally:
            maker, self._maker = self._maker, None
        if maker is None or not maker.unanswered:
            return
        if failure is None:
            maker.opened(self.producers.epoch)
        else:
            maker.fail(failure)

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
        """Store a message; the producer gets a receipt once the message is stored."""
        self._count(producer, len(data), digest.message_count)
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
            # Usual in memory: stored immediately.
            if deduplicated:
                self._keep_sequence_id(producer, sequence_id, highest_sequence_id, position)
            ledger_id, entry_id = position
            producer.received(sequence_id, ledger_id, entry_id, highest_sequence_id)
            self.latency.add(0.0)
        else:
            producer.pending += 1
            producer.cnx.publishes.begun(size)
            now, highest = self.clock.now(), highest_sequence_id
            pending = _Pending(position, producer, sequence_id, highest, size, deduplicated, now)
            self._pending.append(pending)
            self._settle()
        self.publish_times.last = published

    def _append(self, data: bytes, digest: MessageDigest) -> Position | None:
        """Store an entry, and return its position; on failure, notify producers and return None."""
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
        """Store an entry; if the store is full, first free capacity.

        Capacity is freed by deleting messages that no subscription needs, first of this topic, then
        of other topics, and by evicting messages if the backlog quota's action is to evict.
        """
        for make_room in (self.drop_unneeded, self._context.make_room, self._evict):
            try:
                return self.ledger.append(data, digest)
            except MessageStoreFullError:
                make_room()
        return self.ledger.append(data, digest)

    def drop_unneeded(self, opened_before_ms: float = inf) -> None:
        """Delete the topic's ledgers that no subscription needs, as far as retention allows.

        Args:
            opened_before_ms: Also delete the open ledger if it was opened before this time (ms
                since 1970); inf: whenever it was opened.

        Raises:
            MessageStoreError: The ledger is closed to writes.
        """
        if self._unneeded_since_ms() < opened_before_ms:
            self.touched()
            # The sequence ids of the dropped entries must be saved first.
            self.deduplication.save()
            self.ledger.roll()
        self.subscriptions.moved()

    def _unneeded_since_ms(self) -> float:
        """Return when the open ledger was opened (ms since 1970); inf if it is empty or needed."""
        open_one, end = self.ledger.ledgers[-1], self.ledger.last_confirmed
        is_unneeded = open_one.entries and self.subscriptions.slowest > end
        return open_one.opened_at if is_unneeded else inf

    def unneeded_at_ms(self, rollover_seconds: float) -> float:
        """Return when ledgers can next be deleted as unneeded, in ms since 1970; inf for never."""
        rolls_at = self._unneeded_since_ms() + 1000 * rollover_seconds
        return min(rolls_at, self.subscriptions.trimmed_at_ms())

    def _evict(self) -> None:
        evict_oldest(self)

    def _is_new(self, producer: Producer, sequence_id: int, highest_sequence_id: int) -> bool:
        """Return True if deduplication does not know a message; otherwise answer the producer."""
        verdict = self.deduplication.judge(producer.name, sequence_id)
        if verdict is Verdict.DUPLICATE:
            producer.received(sequence_id, -1, -1, highest_sequence_id)
        elif verdict is Verdict.UNKNOWN:
            last = to_wire(highest_of(sequence_id, highest_sequence_id))
            producer.refused(last, pb.PersistenceError, _UNKNOWN_STATUS)
        return verdict is Verdict.NEW

    def _keep_sequence_id(
        self, producer: Producer, sequence_id: int, highest_sequence_id: int, position: Position
    ) -> None:
        highest = highest_of(sequence_id, highest_sequence_id)
        self.deduplication.stored(producer.name, highest, position)

    def confirmed(self, last: Position) -> None:
        """Send receipts of messages stored up to a position, and schedule their delivery."""
        self._confirmed = last
        if not self._telling:
            # Scheduled before the first receipt's flush, so that both leave in one write.
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
            self.latency.add((now - one.begun_at) * 1000)
            self._let_go(one)

    def _let_go(self, one: _Pending) -> None:
        one.producer.cnx.publishes.ended(one.size_bytes)
        one.producer.settled()

    def _tell(self) -> None:
        self._telling = False
        self.touched()
        if not self.closing:
            self.subscriptions.entries_added()

    def failed(self, error: MessageStoreError) -> None:
        """Unload the topic after its ledger failed.

        Clients reconnect, and resend the messages that were not stored.
        """
        logger.warning("unloading %s, whose messages cannot be stored: %s", self.name, error)
        self.forget_pending()
        self._context.broken(self)

    def forget_pending(self) -> None:
        """Drop the unstored messages without notifying the producers."""
        pending, self._pending = self._pending, deque()
        for lost in pending:
            self._let_go(lost)
        self.deduplication.lost()

    def _full(self, error: MessageStoreFullError) -> None:
        """Close all producers because the store is full, and refuse new producers for a while."""
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
        """True if the store lacked capacity for a message a short while ago."""
        since = self.full_since
        return since is not None and self.clock.now() - since < FULL_SECONDS

    def check_room(self) -> None:
        """Refuse a new producer while the store is full or a backlog quota is exceeded.

        Raises:
            RequestError: The store is full, or a backlog quota is exceeded.
        """
        if self.full:
            raise self._no_room()
        check_quota(self)

    # -- life cycle ---------------------------------------------------------------------------

    def terminate(self) -> None:
        """Close the producers, and permanently refuse further messages."""
        if not self.terminated:
            self.terminated = True
            self.ledger.set_property(TERMINATED_PROPERTY, "true")
            self.producers.disconnect(terminated())
            self.subscriptions.terminated()

    def truncate(self) -> None:
        """Clear the backlogs of all subscriptions, and delete all closed ledgers."""
        self.subscriptions.clear_backlogs(internal=True)
        self.deduplication.save()
        self.ledger.truncate()

    def update_rates(self, seconds: float) -> None:
        """Compute the topic's message rates for the statistics period that ends now."""
        super().update_rates(seconds)
        fetched = self.ledger.fetched_entries
        self.read_rate, self._seen_fetched = (fetched - self._seen_fetched) / seconds, fetched

    def policies_changed(self) -> None:
        """Read the topic's changed policies, and apply them."""
        super().policies_changed()
        self.deduplication.switch(on=self.policies.deduplication)
        self.compaction.keep_for_later()


class NonPersistentTopic(Topic):
    """A topic that stores nothing, and sends messages only to consumers that have permits.

    Source: upstream NonPersistentTopic.
    """

    subscriptions: NonPersistentSubscriptions

    def __init__(self, name: TopicName, context: TopicContext) -> None:
        super().__init__(name, context, None)
        self.subscriptions = NonPersistentSubscriptions(self)

    def _epoch_changed(self, epoch: int, maker: Producer | None) -> None:
        """Open the producer at once, because the topic stores no state."""
        if maker is not None:
            maker.opened(epoch)

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
        """Send a message to consumers; the message id in the receipt is always (0, 0)."""
        self.touched()
        self._count(producer, len(data), digest.message_count)
        producer.received(sequence_id, 0, 0, highest_sequence_id)
        self.subscriptions.publish(Entry(0, 0, data, digest))
