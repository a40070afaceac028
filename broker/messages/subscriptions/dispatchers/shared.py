"""The dispatcher of Shared subscriptions, which delivers to all consumers round robin."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from broker.messages.metadata import chunk_of
from broker.messages.subscriptions.context import Waits
from broker.messages.subscriptions.delayed import DelayedMessages
from broker.messages.subscriptions.dispatchers.chunks import ChunkOwners
from broker.messages.subscriptions.dispatchers.dispatcher import READ_ENTRIES, Place
from broker.messages.subscriptions.dispatchers.holding import HoldingDispatcher
from limiter.clock import Timer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from broker.messages.entry import Entry
    from broker.messages.position import Position
    from broker.messages.subscriptions.consumer import AnySubscription, Consumer
    from broker.messages.subscriptions.context import SubscribedTopic
    from broker.policies.rate_limiter import RateLimiter

SEARCH_A_STEP = 40
"""The number of waiting positions that can be checked in the time of one delivery."""
LOOK_AGAIN_SECONDS = 5.0
"""The largest number of seconds until a changed wall clock affects delayed messages: timers use
another clock."""
CONSUMERS_A_STEP = 20
"""The number of consumers whose permits can be checked in the time of one delivery."""
WORDS_A_STEP = 16
"""The number of words of a batch's ack_set that can be written in the time of one delivery."""


class SharedDispatcher(HoldingDispatcher):
    """A dispatcher that delivers round robin to all consumers; any of them may get redeliveries.

    Source: upstream PersistentDispatcherMultipleConsumers.

    Attributes:
        delayed: The entries that are not yet due for delivery.
    """

    def __init__(self, subscription: AnySubscription, topic_rate: RateLimiter) -> None:
        self.delayed = self._no_delays(subscription.topic)
        self._timer = Timer(subscription.topic.clock)
        # Uncounted work beside deliveries: entries read and not delivered, and long ack_sets.
        self._other_steps = 0
        # None: to be rebuilt. With 1,000 consumers rebuilding takes time, and many arrive together.
        self._levels: dict[int, list[Consumer]] | None = None
        self._due_ms = 0
        self._chunks = ChunkOwners()
        # A chunk waits for the first chunk of its message, as on a real broker; nothing else goes.
        self._lacks_first_chunk = False
        self._next_in: dict[int, int] = {}
        super().__init__(subscription, topic_rate)

    @staticmethod
    def _no_delays(topic: SubscribedTopic) -> DelayedMessages:
        tick_ms = topic.policies.delayed_tick_ms
        return DelayedMessages(tick_ms, strict=topic.rules.strict_delivery_time)

    def wake(self) -> None:
        """Schedule a run that checks again whether consumers can receive waiting entries."""
        self.replay.changed()
        super().wake()

    # -- delivering ---------------------------------------------------------------------------

    def _deliver(self, most: int) -> int:
        # Returned entries first, so that delivery is in order and precedes new entries.
        handled = self._let_leave()
        if self._leaving:
            return most
        if self._more_follow or self._lacks_first_chunk:
            return 0
        while handled < most:
            room = sum(one.permits for one in self.consumers if one.waits is None)
            allowed = self._allowed(min(READ_ENTRIES, room)) if room > 0 else 0
            if not allowed:
                break
            if self.delayed:  # Without permits due messages stay among the delayed (recorded).
                self._take_due(allowed)
            entries = self._waiting_entries(allowed) if self.replay else None
            if entries is None:
                entries = self._new_entries(allowed)
            if entries is None or self._fetching is not None:
                break
            self._share_out(entries)
            handled += max(1, self._work_of(entries)) + self._other_steps
            handled += self.replay.take_looked_at() // SEARCH_A_STEP
            handled += len(self.consumers) // CONSUMERS_A_STEP
            self._other_steps = 0
        self._call_when_writable(self.consumers)
        return handled

    def _waiting_entries(self, most: int) -> list[Entry] | None:
        """Return the first waiting entries whose consumer can receive them, or None.

        The list may be shorter than requested, or empty, if entries are acknowledged, dropped, or
        being fetched, or the search is not over.
        """
        found = self._those_left(self.replay.search(most, self._may_go))
        return [] if found is None and self.replay.searching else found

    def _may_go(self, number: int) -> bool:
        """Return True if a waiting chunk's consumer can receive it."""
        owner = self._chunks.consumer(number)
        return owner is None or owner.waits is None

    @property
    def _most_ahead(self) -> int:
        """The most entries that may wait for their consumers while later entries are read.

        The two keys limit it; without both, the limits of unacknowledged messages.
        """
        rules, policies = self._topic.rules.dispatch, self._topic.policies
        consumers = len(self.consumers)
        limits = (rules.look_ahead, rules.look_ahead_per_consumer * consumers)
        if max(limits) <= 0:
            most_unacked = policies.max_unacked_per_consumer * consumers
            limits = (policies.max_unacked_per_subscription, most_unacked)
        return min((each for each in limits if each > 0), default=sys.maxsize)

    def _those_left(self, positions: list[Position]) -> list[Entry] | None:
        """Return the unacknowledged entries at the given positions of the replay queue."""
        if not positions:
            return None
        left = [at for at in positions if not self._cursor.is_acknowledged(at)]
        if len(left) < len(positions):
            self._forget(positions, left)
        read = self._read_each(left)
        if read is None:
            return []
        looked_at, entries = read
        if len(entries) < len(looked_at):
            self._forget(looked_at, [entry.position for entry in entries])
        return entries

    def _forget(self, positions: Iterable[Position], but: Iterable[Position]) -> None:
        gone = {*positions}.difference(but)
        self._other_steps += len(gone)
        for position in gone:
            self.replay.remove(position)

    def _new_entries(self, most: int) -> list[Entry] | None:
        cursor = self._cursor
        if self.blocked or self._waits_for_delayed() or len(self.replay) >= self._most_ahead:
            return None
        holes = cursor.acknowledged.count
        if holes and not self._waiting_for:
            cursor.pass_acknowledged(most)
        if cursor.at_end:
            self._wait_at_end(most)
            return None
        read = self._read(cursor.read_position, self._end_wait(most))
        if not read:
            return None
        cursor.read_position = self._ledger.following(read[-1].position)
        count = len(read)
        if holes:
            read = [entry for entry in read if not cursor.is_acknowledged(entry.position)]
        if self.delayed or any(entry.deliver_at for entry in read):
            read = [entry for entry in read if not self._is_delayed(entry)]
        self._other_steps += count - len(read)
        return read

    def _waits_for_entries(self, consumer: Consumer) -> Waits | None:
        return None if self.replay else self._waits_for_new(Waits.NOTHING_LEFT)

    def _waits_for_new(self, at_end: Waits) -> Waits | None:
        """Return why no new entry is delivered; ``at_end`` if all are read.

        If only delayed messages are left, that is the reason.
        """
        if self._is_time:
            return None
        if self._cursor.at_end:
            return Waits.DELAY if self.delayed and not self.replay else at_end
        if self.blocked:
            return Waits.SUBSCRIPTION
        return Waits.DELAY if self._waits_for_delayed() else None

    @property
    def _is_time(self) -> bool:
        """True if a delayed message may be delivered now."""
        return bool(self.delayed) and self.delayed.is_due(self._topic.clock.wall_ms())

    def _waits_for_delayed(self) -> bool:
        return bool(self.delayed) and self.delayed.pauses_reading(self._topic.clock.wall_ms())

    def _is_delayed(self, entry: Entry) -> bool:
        topic = self._topic
        if not topic.policies.delayed_delivery:
            return False
        now_ms = topic.clock.wall_ms()
        kept = self.delayed.add(entry.position, entry.deliver_at, now_ms)
        if kept:
            self._arm(now_ms)
        return kept

    def _share_out(self, entries: list[Entry]) -> None:
        at, messages = 0, sum(entry.message_count for entry in entries)
        mean = max(1, messages // max(1, len(entries)))
        in_turn = self._in_turn()
        while at < len(entries):
            consumer = next(in_turn, None)
            if consumer is None:
                self.replay.add_all(entry.position for entry in entries[at:])
                return
            for entry in entries[at : at + self._share_of(consumer, messages, mean)]:
                self._send_to_owner(consumer, entry)
                messages -= entry.message_count
                at += 1
                if not consumer.cnx.outbound.writable:
                    break
            consumer.sent_together()

    def _send_to_owner(self, consumer: Consumer, entry: Entry) -> None:
        """Deliver an entry to a consumer or, for a chunk, to the consumer of the first chunk.

        A chunk waits while that consumer cannot receive it.
        """
        chunk = chunk_of(entry.data)
        if chunk is None:
            self._send(consumer, entry)
            return
        rules = self._topic.rules
        if rules.waits_for_first_chunk and chunk.number and not self._chunks.owns(chunk):
            self._lacks_first_chunk = True
            self.replay.add((entry.ledger_id, entry.entry_id))
            return
        owner = self._chunks.owner(chunk, consumer)
        if owner.consumer.waits is None:
            self._send(owner.consumer, entry)
            self._chunks.delivered(chunk)
            owner.consumer.sent_together()
        else:
            place = (entry.ledger_id, entry.entry_id)
            self.replay.remove(place)  # It may wait for an earlier owner.
            self.replay.add(place, owner.number)

    def _share_of(self, consumer: Consumer, messages: int, mean: int) -> int:
        """Return the number of entries that a consumer receives before the next one gets any.

        It is the number of permits divided by the mean size of the read entries (recorded: 5
        permits get batches of 3, 3 and 1 messages, not only the first two batches).

        Args:
            consumer: A consumer with permits.
            messages: The messages of all remaining entries.
            mean: The mean number of messages of an entry.
        """
        messages = min(messages, consumer.permits)
        if self._most_unacked > 0:
            messages = min(messages, self._most_unacked - consumer.unacked)
        return max(1, min(self._topic.rules.dispatch.round_robin_messages, -(-messages // mean)))

    def _in_turn(self) -> Iterator[Consumer]:
        """Yield the consumers with permits round robin, those of the highest priority level first.

        No consumer gets permits meanwhile: a consumer without permits is checked once.
        """
        if self._levels is None:
            self._levels = self._sorted()
        for level, members in self._levels.items():
            start, again = self._next_in.get(level, 0), []
            for step in range(start, start + len(members)):
                at = step % len(members)
                if members[at].waits is None:
                    self._next_in[level] = at + 1
                    yield members[at]
                    again.append(at)
            for at in again:  # Grows while consumers have permits.
                if members[at].waits is None:
                    self._next_in[level] = at + 1
                    yield members[at]
                    again.append(at)

    def _send(self, consumer: Consumer, entry: Entry, sticky_hash: int = 0) -> int:
        """Deliver an entry's unacknowledged messages to a consumer, and return their number."""
        place, batches = (entry.ledger_id, entry.entry_id), self._cursor.batches
        words, count = None, entry.message_count
        if batches:
            words = batches.words(entry.position)
            if words is not None:
                count = batches.left(entry.position, count)
                self._other_steps += len(words) // WORDS_A_STEP
        redeliveries = self._redeliveries.get(place, 0) if self._redeliveries else 0
        consumer.deliver(entry, count, redeliveries, words)
        if self.replay:
            self.replay.remove(place)
        if self._rates:
            self._count(entry, count)
        self._gets(consumer, place, count, sticky_hash)
        return count

    def redeliver(
        self, consumer: Consumer, positions: Iterable[Place] | None, *, more: bool = False
    ) -> None:
        """Redeliver a consumer's pending entries, among which may be a lacking first chunk."""
        self._lacks_first_chunk = False
        super().redeliver(consumer, positions, more=more)

    def acknowledged(
        self, consumer: Consumer, position: Position, newly: int, *, done: bool
    ) -> None:
        """Update the state after an acknowledgement, maybe of the chunk that stops delivery."""
        super().acknowledged(consumer, position, newly, done=done)
        if self._lacks_first_chunk and position in self.replay:
            self._lacks_first_chunk = False
            self.wake()

    def policies_changed(self) -> None:
        """Apply the topic's changed dispatch rates and limits of unacknowledged messages."""
        super().policies_changed()
        policies = self._topic.policies
        self.delayed.change_tick(policies.delayed_tick_ms)
        for consumer in self.consumers:
            consumer.unblock()
            consumer.blocked = 0 < self._most_unacked <= consumer.unacked
        self.blocked = 0 < policies.max_unacked_per_subscription <= self.unacked

    # -- consumers ----------------------------------------------------------------------------

    def add(self, consumer: Consumer) -> None:
        """Add a newly connected consumer."""
        if not self.consumers:
            self._forget_delayed()  # Shown until now (recorded).
            self._cursor.rewind()
        self._joins(consumer)
        self.consumers.append(consumer)
        if len(self.consumers) > 1 and consumer.priority_level < self.consumers[-2].priority_level:
            # The order of closing by a SEEK (recorded).
            self.consumers.sort(key=lambda one: one.priority_level)
        self._levels = None
        self.wake()

    def _sorted(self) -> dict[int, list[Consumer]]:
        levels: dict[int, list[Consumer]] = {}
        for consumer in self.consumers:
            levels.setdefault(consumer.priority_level, []).append(consumer)
        return levels

    def remove(self, consumer: Consumer) -> None:
        """Remove a consumer, and redeliver its unacknowledged entries as if for the first time."""
        self.consumers.remove(consumer)
        self._levels = None
        if not self.consumers:
            self._forget_all()
            return
        self._chunks.left(consumer)
        self._lacks_first_chunk = False
        self._begins_to_leave(consumer)
        self.wake()

    def remove_all(self) -> None:
        """Remove all consumers in one step; nothing is redelivered, as no consumer remains."""
        self.consumers.clear()
        self._levels = None
        self._forget_all()

    def _forget_all(self) -> None:
        """Reset the state, so that the next consumer starts at the first unacknowledged entry."""
        super()._forget_all()
        self._next_in.clear()
        self._chunks.clear()
        self._lacks_first_chunk = False
        self._waiting_for = 0
        self._timer.stop()
        self._forget_fetched()
        self._cursor.rewind()

    def cursor_moved(self, before: Position) -> None:
        """Forget the entries that the cursor has passed, and take them from their consumers."""
        self._lacks_first_chunk = False
        if self.delayed:
            self.delayed.discard_through(self._cursor.mark_delete)
            if not self.delayed:
                self._forget_delayed()
        super().cursor_moved(before)

    # -- delayed delivery ---------------------------------------------------------------------

    def _forget_delayed(self) -> None:
        old, self.delayed = self.delayed, self._no_delays(self._topic)
        self._topic.turns.in_steps(old.emptied())

    def _arm(self, now_ms: int) -> None:
        wait_ms = self.delayed.next_due(now_ms)
        if wait_ms is None or (self._timer.armed and self._due_ms <= now_ms + wait_ms):
            return
        self._due_ms = now_ms + wait_ms
        self._timer.after(min(wait_ms / 1000, LOOK_AGAIN_SECONDS), self._look)

    def _look(self) -> None:
        """Deliver delayed messages that are due; if none is due yet, check again later.

        The wall clock decides, and may have been set to another time since the timer was started.
        """
        now_ms = self._topic.clock.wall_ms()
        if now_ms < self._due_ms:
            self._arm(now_ms)
        else:
            self.wake()

    def _take_due(self, most: int) -> None:
        now_ms = self._topic.clock.wall_ms()
        if self.delayed.is_due(now_ms):
            self.replay.add_all(self.delayed.take_due(now_ms, most))
        elif self._timer.armed:
            return
        self._arm(now_ms)

    def close(self) -> None:
        """Stop all timers, and forget all delayed messages."""
        super().close()
        self._timer.stop()
        self._forget_delayed()
