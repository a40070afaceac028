"""The dispatchers of Exclusive and Failover subscriptions, which deliver to one consumer."""

from __future__ import annotations

from bisect import bisect_right, insort
from contextlib import suppress
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.messages.errors import MessageStoreError
from broker.messages.metadata import key_of
from broker.messages.position import EARLIEST, Position
from broker.messages.subscriptions.context import Waits
from broker.messages.subscriptions.dispatchers.dispatcher import (
    FETCH_BYTES,
    READ_ENTRIES,
    Dispatcher,
    Place,
)
from broker.messages.subscriptions.key_shared.ranges import FixedRanges, murmur
from limiter.clock import Timer
from server.connection.request_errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from broker.messages.compaction.compacted_entries import CompactedEntries
    from broker.messages.entry import Entry
    from broker.messages.subscriptions.consumer import AnySubscription, Consumer
    from broker.policies.rate_limiter import RateLimiter
    from proto.names import TopicName

POINTS_PER_NAME = 100
_HASHES = 1 << 31


def active_of(consumers: Sequence[Consumer], topic: TopicName) -> int:
    """Return the index of the active consumer in a non-empty list sorted by ``rank``.

    Only consumers of the highest priority level are candidates. Partition i of a topic goes to the
    candidate with index i, modulo their number. Any other topic goes to the owner of the first
    point at or after the topic's hash on a ring, which has 100 points for each consumer name. The
    choice for a partition takes constant time: a connection may close with a thousand consumers,
    and each causes a new choice.

    Source: upstream AbstractDispatcherSingleActiveConsumer.pickAndScheduleActiveConsumer.
    """
    top = bisect_right(consumers, consumers[0].priority_level, key=lambda one: one.priority_level)
    if topic.partition_index >= 0:
        return topic.partition_index % top
    target = murmur(str(topic).encode())
    # At equal distances the last consumer, as with duplicate names.
    return min(reversed(range(top)), key=lambda index: _distance(consumers[index].name, target))


def rank(consumer: Consumer) -> tuple[int, str]:
    """Return the sort key of a consumer: its priority level, then its name."""
    return consumer.priority_level, consumer.name


@lru_cache(maxsize=10_000)
def _distance(name: str, target: int) -> int:
    """Return the distance on the ring from a target hash to the next point of a name."""
    return min(
        (murmur(f"{name}{number}".encode()) - target) % _HASHES for number in range(POINTS_PER_NAME)
    )


class SingleActiveDispatcher(Dispatcher):
    """A dispatcher that delivers in order to one active consumer, while further ones stand by.

    Source: upstream PersistentDispatcherSingleActiveConsumer.

    Attributes:
        active: The consumer that receives messages; None without consumers.
    """

    def __init__(self, subscription: AnySubscription, topic_rate: RateLimiter) -> None:
        super().__init__(subscription, topic_rate)
        self.active: Consumer | None = None
        # The key hashes that an Exclusive consumer requested; None: all.
        self._ranges: FixedRanges[Consumer] | None = None

    def _deliver(self, most: int) -> int:
        active, cursor, handled = self.active, self._cursor, 0
        if active is None:
            return 0
        while handled < most and active.waits is None and not cursor.at_end:
            entries = self._next_entries(active)
            if not entries:
                break
            handled += self._work_of(entries)
            for entry in entries:
                if not active.cnx.outbound.writable:
                    break
                self._send(active, entry)
                cursor.read_position = self._behind(entry.position)
            active.sent_together()
        if active.permits > 0 and cursor.at_end:
            self._wait_at_end(active.permits)
        self._call_when_writable((active,))
        return handled

    def waits(self, consumer: Consumer) -> Waits | None:
        """Return the reason why a consumer receives no message now; None if it soon gets one."""
        if consumer is self.active:
            return super().waits(consumer)
        return Waits.NO_ACTIVE_CONSUMER if self.active is None else Waits.ACTIVE_CONSUMER

    def _next_entries(self, active: Consumer) -> list[Entry] | None:
        """Return as many entries as the consumer has permits, counting a batch as one entry.

        Return None while entries are fetched from the store.
        """
        cursor, compacted = self._cursor, self._compacted()
        entries = min(READ_ENTRIES, active.permits)
        if cursor.acknowledged.count and compacted is None and not self._waiting_for:
            cursor.pass_acknowledged(entries)
        allowed = self._allowed(self._end_wait(entries))
        if not allowed:
            return []
        if compacted is not None and cursor.read_position <= compacted.horizon:
            if self._asked == cursor.read_position:
                return self._take_fetched(allowed)
            self._fetch(cursor.read_position, partial(self._fetch_compacted, allowed))
            return None
        return self._read(cursor.read_position, allowed)

    async def _fetch_compacted(self, most: int) -> list[Entry]:
        """Fetch the next compacted entries or, after the last of them, the topic's later entries.

        A new compaction may replace and delete the compacted entries during a fetch.
        """
        cursor = self._cursor
        while (compacted := self._compacted()) is not None:
            try:
                entries = await compacted.fetch(cursor.read_position, most, FETCH_BYTES)
            except MessageStoreError:
                if self._compacted() is compacted:
                    raise
                continue
            if entries:
                return entries
            if self._compacted() is compacted:
                # The cursor may have skipped or expired further meanwhile.
                behind = self._ledger.following(compacted.horizon)
                cursor.read_position = max(cursor.read_position, behind)
                return []
        return await self._ledger.fetch(cursor.read_position, most, FETCH_BYTES)

    def _compacted(self) -> CompactedEntries | None:
        """Return the topic's compacted entries if the active consumer reads them, else None."""
        reads_it = self.active is not None and self.active.options.read_compacted
        return self._topic.compaction.compacted if reads_it else None

    def _behind(self, position: Position) -> Position:
        """Return the next position to read after an entry, whose ledger may have been deleted."""
        if self._compacted() is not None:
            return Position(position.ledger_id, position.entry_id + 1)
        return self._ledger.following(position)

    def _rewind(self) -> None:
        cursor = self._cursor
        cursor.rewind()
        self._forget_fetched()
        self._waiting_for = 0
        if self._compacted() is not None:
            mark = cursor.mark_delete
            from_start = mark == self._ledger.preceding(EARLIEST)
            cursor.read_position = EARLIEST if from_start else self._behind(mark)

    def _send(self, active: Consumer, entry: Entry) -> None:
        cursor = self._cursor
        words, count = None, entry.message_count
        if cursor.acknowledged.count or cursor.batches:
            position = entry.position
            if cursor.is_acknowledged(position):
                return
            words = cursor.batches.words(position)
            if words is not None:
                count = cursor.batches.left(position, count)
        ranges = self._ranges
        if ranges is None or ranges.select(ranges.hash_of(key_of(entry.data))) is active:
            active.deliver(entry, count, 0, words)
            self._count(entry, count)

    def add(self, consumer: Consumer) -> None:
        """Add the subscription's only consumer; refuse any further consumer.

        If the consumer requests ranges of key hashes, it receives only messages with such keys; the
        others stay unacknowledged.
        """
        if self.consumers:
            raise RequestError(pb.ConsumerBusy, "Exclusive consumer is already connected")
        self._ranges = FixedRanges() if consumer.options.key_shared.hashRanges else None
        if self._ranges is not None:
            with suppress(RequestError):  # Then no message is delivered (recorded).
                consumer.take_hashes(self._ranges)
        self.consumers.append(consumer)
        self.active = consumer
        self._rewind()

    def remove(self, consumer: Consumer) -> None:
        """Remove a consumer; its unacknowledged entries are read again for the next consumer."""
        self.consumers.remove(consumer)
        if self.active is consumer:
            self.active = None
            self._rewind()

    def redeliver(
        self, consumer: Consumer, positions: Iterable[Place] | None, *, more: bool = False
    ) -> None:
        """Redeliver all unacknowledged entries, whichever positions the consumer requested."""
        if consumer is self.active:
            self._rewind()
            self.wake()

    def acknowledged(
        self, consumer: Consumer, position: Position, newly: int, *, done: bool
    ) -> None:
        """Do nothing: as on a real broker, pending messages are not counted here."""

    def cursor_moved(self, _: Position) -> None:
        """Continue delivery after the entries that the cursor has passed."""
        self.wake()


class FailoverDispatcher(SingleActiveDispatcher):
    """A dispatcher that delivers to one chosen consumer and, when that one leaves, to another.

    A new choice is announced, and delivery to the new consumer starts, after a delay: many
    simultaneous arrivals and departures cause one announcement. Then all connected consumers are
    notified, even if all consumers had left during the delay (recorded).
    """

    def __init__(self, subscription: AnySubscription, topic_rate: RateLimiter) -> None:
        super().__init__(subscription, topic_rate)
        self._change = Timer(self._topic.clock)

    def _deliver(self, most: int) -> int:
        return 0 if self._change.armed else super()._deliver(most)

    def _waits_for_entries(self, consumer: Consumer) -> Waits | None:
        return Waits.CHANGE if self._change.armed else super()._waits_for_entries(consumer)

    def add(self, consumer: Consumer) -> None:
        """Add a consumer, and choose the active consumer; notify a new standby immediately."""
        insort(self.consumers, consumer, key=rank)
        if not self._choose() and self.active is not None:
            self._whether_active(consumer)

    def _choose(self) -> bool:
        chosen = self.consumers[active_of(self.consumers, self._topic.name)]
        if chosen is self.active:
            return False
        self.active = chosen
        self._change.arm(self._topic.rules.failover_delay_seconds, self._changed)
        return True

    def _changed(self) -> None:
        self._rewind()
        self.tell(self.consumers, self._whether_active)
        self.wake()

    def _whether_active(self, consumer: Consumer) -> None:
        consumer.tell_active(is_active=consumer is self.active)

    def remove(self, consumer: Consumer) -> None:
        """Remove a consumer, and choose the active consumer again.

        Choosing takes time, and a connection may close with a thousand consumers. For a topic that
        is not a partition, only the departure of the active consumer can change the choice.
        """
        self.consumers.remove(consumer)
        if not self.consumers:
            self.active = None
            self._rewind()
        elif self.active in (consumer, None) or self._topic.name.partition_index >= 0:
            self._choose()

    def disconnect_active(self) -> Consumer | None:
        """Remove and return the active consumer, because of a SEEK.

        A successor is chosen when the next consumer arrives.

        A pending change is still announced to the remaining consumers (recorded).
        """
        active = self.active
        if active is not None:
            self.consumers.remove(active)
            self.active = None
            self._rewind()
        return active

    def close(self) -> None:
        """Stop all timers, including the failover delay."""
        super().close()
        self._change.stop()
