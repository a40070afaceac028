"""Dispatch to all consumers in turn: Shared."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from broker.subscriptions.delayed import DelayedMessages
from broker.subscriptions.dispatchers.dispatcher import READ_BYTES, READ_ENTRIES, Dispatcher, Place
from broker.subscriptions.places.held import HASH_BITS, HASHES
from broker.subscriptions.places.place_map import NOTHING, PlaceMap
from broker.subscriptions.position_set import PositionSet
from broker.subscriptions.replay import ReplayQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from broker.messages.entry import Entry
    from broker.messages.position import Position
    from broker.subscriptions.consumer import Consumer
    from broker.subscriptions.context import SubscriptionContext
    from limiter.clock import TimerHandle


LEAVING_A_TURN = 1_000
"""Entries that leave consumers who gave them back in one turn of the event loop."""
SEARCH_A_STEP = 40
"""Waiting positions that are looked at in the time in which one entry is delivered."""
CONSUMERS_A_STEP = 20
"""Consumers that are asked for room in that time."""
WORDS_A_STEP = 16
"""Words of a batch's ack_set that are written in that time."""


class _Leaving(NamedTuple):
    """Entries that leave a consumer.

    Attributes:
        consumer: Has them, or had them before it left; None: whoever has each of them.
        positions: The entries; some may be acknowledged meanwhile.
        then: Takes consumer, entry, the messages left, and the hash of the key.
    """

    consumer: Consumer | None
    positions: Iterator[Place]
    then: Callable[[Consumer, Place, int, int], None]


class SharedDispatcher(Dispatcher):
    """Delivers to all consumers in turn; what one gives back goes to any.

    Source: upstream PersistentDispatcherMultipleConsumers.

    Attributes:
        replay: Entries that were read and wait to be delivered, or delivered again.
        delayed: Entries that may not be delivered yet.
        unacked: Messages that consumers have and did not acknowledge.
        blocked: They are so many that nothing new is read.
    """

    def __init__(self, context: SubscriptionContext) -> None:
        self.replay = ReplayQueue()
        self.delayed = self._no_delays(context)
        self._redeliveries = PlaceMap()
        self._leaving: deque[_Leaving] = deque()
        # A look through all that consumers have waits in the above: one is enough for many skips.
        self._looks_through_all = False
        # Who has an entry, by numbers, until all that a consumer had has left it.
        self._holders = PlaceMap()
        self._members: dict[int, Consumer] = {}
        self._last_number = 0
        # Of what each consumer has: the entries it gave back that still wait in the above. Else a
        # client that says so again and again would have a list of all it has made for each time.
        self._given_back_already: dict[Consumer, PositionSet] = {}
        # Consumers of which a command that gives back very much is being taken in steps.
        self._more_follow: set[Consumer] = set()
        # Consumers that gave back all they have, which waits there too.
        self._gave_back_all: set[Consumer] = set()
        self._timer: TimerHandle | None = None
        # Work beside the delivery of entries since it was last counted: entries that were read and
        # not delivered, and very long ack_sets.
        self._other_steps = 0
        # None: to be made anew. With 1,000 consumers that takes a moment, and many come at once.
        self._levels: dict[int, list[Consumer]] | None = None
        self._due_ms = 0
        self._next_in: dict[int, int] = {}
        self.unacked = 0
        self.blocked = False
        super().__init__(context)

    @staticmethod
    def _no_delays(context: SubscriptionContext) -> DelayedMessages:
        tick_ms = context.topic.policies.delayed_tick_ms
        return DelayedMessages(tick_ms, strict=context.rules.strict_delivery_time)

    # -- delivering ---------------------------------------------------------------------------

    def _deliver(self, most: int) -> int:
        # First all that was given back, so that it comes before what is new, and in order.
        handled = self._let_leave(LEAVING_A_TURN)
        if self._leaving:
            return most
        if self._more_follow:
            return 0
        while handled < most:
            room = sum(one.permits for one in self.consumers if one.takes_messages)
            allowed = self._allowed(min(READ_ENTRIES, room)) if room > 0 else 0
            if not allowed:
                break
            entries = self._waiting_entries(allowed) if self.replay else None
            if entries is None:
                entries = self._new_entries(allowed)
            if entries is None:
                break
            self._share_out(entries)
            handled += max(1, self._work_of(entries)) + self._other_steps
            handled += self.replay.take_looked_at() // SEARCH_A_STEP
            handled += len(self.consumers) // CONSUMERS_A_STEP
            self._other_steps = 0
        self._call_when_writable(self.consumers)
        return handled

    def _waiting_entries(self, most: int) -> list[Entry] | None:
        """Return the first entries of the replay queue; None if there are none.

        There are fewer, or none, where some are dropped: they are acknowledged.
        """
        return self._those_left(self.replay.first(most))

    def _those_left(self, positions: list[Position]) -> list[Entry] | None:
        """Return the entries of some positions of the replay queue that are not acknowledged."""
        if not positions:
            return None
        found = [self._still_there(at) for at in positions]
        entries = [entry for entry in found if entry is not None]
        self._other_steps += len(found) - len(entries)
        return entries

    def _still_there(self, position: Position) -> Entry | None:
        """Return an entry of the replay queue; forget it if it need not be delivered."""
        cursor = self._cursor
        entry = None if cursor.is_acknowledged(position) else self._ledger.entry(position)
        if entry is None:
            self.replay.remove(position)
        return entry

    def _new_entries(self, most: int) -> list[Entry] | None:
        """Return the next entries that may be delivered now; None if there are none to read."""
        cursor = self._cursor
        if self.blocked or self._waits_for_delayed():
            return None
        holes = cursor.acknowledged.count
        if holes and not self._waiting_for:
            cursor.pass_acknowledged(most)
        if cursor.at_end:
            self._wait_at_end(most)
            return None
        read = self._ledger.read(cursor.read_position, self._end_wait(most), READ_BYTES)
        if not read:
            return None
        cursor.read_position = self._ledger.following(read[-1].position)
        count = len(read)
        if holes:
            read = [entry for entry in read if not cursor.is_acknowledged(entry.position)]
        if any(entry.deliver_at for entry in read):
            read = [entry for entry in read if not self._is_delayed(entry)]
        self._other_steps += count - len(read)
        return read

    def _waits_for_delayed(self) -> bool:
        return bool(self.delayed) and self.delayed.pauses_reading(
            self._context.topic.clock.wall_ms()
        )

    def _is_delayed(self, entry: Entry) -> bool:
        topic = self._context.topic
        if not entry.deliver_at or not topic.policies.delayed_delivery:
            return False
        now_ms = topic.clock.wall_ms()
        kept = self.delayed.add(entry.position, entry.deliver_at, now_ms)
        if kept:
            self._arm(now_ms)
        return kept

    def _share_out(self, entries: list[Entry]) -> None:
        """Deliver entries to the consumers in turn; what nobody takes waits."""
        at, messages = 0, sum(entry.message_count for entry in entries)
        mean = max(1, messages // max(1, len(entries)))
        in_turn = self._in_turn()
        while at < len(entries):
            consumer = next(in_turn, None)
            if consumer is None:
                self.replay.add_all(entry.position for entry in entries[at:])
                return
            for entry in entries[at : at + self._share_of(consumer, messages, mean)]:
                self._send(consumer, entry)
                messages -= entry.message_count
                at += 1
                if not consumer.cnx.outbound.writable:
                    break

    def _share_of(self, consumer: Consumer, messages: int, mean: int) -> int:
        """Return how many entries go to a consumer before the next has its turn.

        Its permits are divided by the mean size of the entries that were read (recorded: with 5
        permits it gets batches of 3, 3 and 1, not only the first two).

        Args:
            consumer: Has room.
            messages: Those of all entries that are left.
            mean: Messages of an entry.
        """
        messages = min(messages, consumer.permits)
        most_unacked = self._context.topic.policies.max_unacked_per_consumer
        if most_unacked > 0:
            messages = min(messages, most_unacked - consumer.unacked)
        return max(1, min(self._context.rules.round_robin_messages, -(-messages // mean)))

    def _in_turn(self) -> Iterator[Consumer]:
        """Yield the consumers with room in turn, those of the highest level that has one.

        Nobody gets room meanwhile: who has none is asked once.
        """
        if self._levels is None:
            self._levels = self._sorted()
        for level, members in self._levels.items():
            start, again = self._next_in.get(level, 0), []
            for step in range(start, start + len(members)):
                at = step % len(members)
                if members[at].takes_messages:
                    self._next_in[level] = at + 1
                    yield members[at]
                    again.append(at)
            for at in again:  # It grows while they still have room.
                if members[at].takes_messages:
                    self._next_in[level] = at + 1
                    yield members[at]
                    again.append(at)

    def _send(self, consumer: Consumer, entry: Entry, sticky_hash: int = 0) -> int:
        """Deliver an entry; return how many messages of it are left."""
        place, batches = (entry.ledger_id, entry.entry_id), self._cursor.batches
        words, count = None, entry.message_count
        if batches:
            words = batches.words(entry.position)
            if words is not None:
                count = batches.left(entry.position, count)
                self._other_steps += len(words) // WORDS_A_STEP
        redeliveries = self._redeliveries.get(place, 0) if self._redeliveries else 0
        consumer.deliver(entry, count, redeliveries, words)
        consumer.pending.put(place, count << HASH_BITS | sticky_hash)
        self._holders.put(place, consumer.number)
        if self.replay:
            self.replay.remove(place)
        if self._rates:
            self._count(entry, count)
        self._has_more(consumer, count)
        return count

    def policies_changed(self) -> None:
        """Follow the rates and the limits of what is unacknowledged that are in force now."""
        super().policies_changed()
        policies = self._context.topic.policies
        for consumer in self.consumers:
            consumer.blocked = 0 < policies.max_unacked_per_consumer <= consumer.unacked
        self.blocked = 0 < policies.max_unacked_per_subscription <= self.unacked

    # -- what consumers have and did not acknowledge ------------------------------------------

    def _has_more(self, consumer: Consumer, messages: int) -> None:
        policies = self._context.topic.policies
        consumer.unacked += messages
        self.unacked += messages
        if 0 < policies.max_unacked_per_consumer <= consumer.unacked:
            consumer.blocked = True
        if 0 < policies.max_unacked_per_subscription <= self.unacked:
            self.blocked = True

    def _has_less(self, consumer: Consumer, messages: int) -> None:
        policies = self._context.topic.policies
        consumer.unacked -= messages
        self.unacked -= messages
        if consumer.blocked and consumer.unacked <= policies.max_unacked_per_consumer // 2:
            consumer.blocked = False
            self.wake()
        if self.blocked and self.unacked < max(1, policies.max_unacked_per_subscription // 2):
            self.blocked = False
            self.wake()

    def acknowledged(
        self, consumer: Consumer, position: Position, newly: int, *, done: bool
    ) -> None:
        """Take acknowledged messages from the consumer that has them, whoever acknowledged."""
        if not done:
            self._acknowledged_in_part(position, newly)
        elif (number := self._holders.pop(position)) != NOTHING:
            holder = self._members[number]
            held = holder.pending.pop(position)
            if self._given_back_already:
                self._has_left(holder, position)
            self._let_go(holder, held & HASHES)
            self._has_less(holder, held >> HASH_BITS)
        # Also if messages of a batch are left, or it waits to be delivered again (recorded).
        if self._redeliveries:
            self._redeliveries.pop(position)

    def _acknowledged_in_part(self, position: Place, newly: int) -> None:
        holder = self._holder_of(position)
        if holder is None:
            return
        if self._is_given_back(holder, position):
            # It was given back first, and its count rose before it is forgotten here.
            self._leaves(holder, position, self._redelivered)
        else:
            held = holder.pending.get(position)
            newly = min(newly, held >> HASH_BITS)
            holder.pending.put(position, held - (newly << HASH_BITS))
            self._has_less(holder, newly)

    def _holder_of(self, position: Place) -> Consumer | None:
        number = self._holders.get(position)
        return None if number == NOTHING else self._members[number]

    def _let_go(self, consumer: Consumer, sticky_hash: int) -> None:
        """Follow that a consumer no longer has an entry whose key has this hash."""

    def redeliver(
        self, consumer: Consumer, positions: Iterable[Place] | None, *, more: bool = False
    ) -> None:
        """Deliver again what a consumer has of these; each counts once more as redelivered."""
        if consumer not in self.consumers:
            return  # It was closed while its command was taken in steps.
        if more:
            self._more_follow.add(consumer)
        else:
            self._more_follow.discard(consumer)
        if consumer not in self._gave_back_all:
            if positions is None:
                self._gave_back_all.add(consumer)
                leaving = self._all_of(consumer)
            else:
                leaving = iter(self._not_yet_given_back(consumer, positions))
            self._leaving.append(_Leaving(consumer, leaving, self._redelivered))
        self.wake()

    def _all_of(self, consumer: Consumer) -> Iterator[Place]:
        """Yield what a consumer has until nothing is left: it gets nothing new meanwhile."""
        while place := consumer.pending.any_place():
            yield place
        self._gave_back_all.discard(consumer)

    def _not_yet_given_back(self, consumer: Consumer, positions: Iterable[Place]) -> list[Place]:
        already = self._given_back_already.setdefault(consumer, PositionSet())
        new = [at for at in positions if at in consumer.pending and already.add(at)]
        if not already:
            del self._given_back_already[consumer]
        return new

    def _let_leave(self, most: int) -> int:
        """Take entries from consumers that gave them back, some each turn; return how many."""
        taken = 0
        while self._leaving:
            of, positions, then = self._leaving[0]
            for position in positions:
                consumer = of or self._holder_of(position)
                if consumer is None:
                    self._redeliveries.pop(position)
                else:
                    self._leaves(consumer, position, then)
                taken += 1
                if taken >= most:
                    return taken
            self._leaving.popleft()
        return taken

    def _leaves(
        self, consumer: Consumer, position: Place, then: Callable[[Consumer, Place, int, int], None]
    ) -> None:
        """Take one entry from a consumer, if it still has it."""
        held = consumer.pending.pop(position)
        self._has_left(consumer, position)
        if held != NOTHING:
            left, sticky_hash = held >> HASH_BITS, held & HASHES
            self._holders.pop(position)
            self._has_less(consumer, left)
            then(consumer, position, left, sticky_hash)
            self._let_go(consumer, sticky_hash)

    def _is_given_back(self, consumer: Consumer, position: Place) -> bool:
        """Tell whether a consumer wants an entry redelivered that it still has."""
        already = self._given_back_already.get(consumer, ())
        return consumer in self._gave_back_all or position in already

    def _has_left(self, consumer: Consumer, position: Place) -> None:
        """Note that a consumer has an entry no more: it may get it, and give it back, again."""
        already = self._given_back_already.get(consumer)
        if already is not None:
            already.discard(position)
            if not already:
                del self._given_back_already[consumer]

    def _redelivered(
        self, consumer: Consumer, position: Place, left: int, sticky_hash: int
    ) -> None:
        if self._cursor.is_acknowledged(position):
            return  # It was skipped or expired in this turn.
        self._redeliveries.put(position, self._redeliveries.get(position, 0) + 1)
        consumer.messages_redelivered += left
        self.replay.add(position, sticky_hash)

    def _given_back(self, _: Consumer, position: Place, __: int, sticky_hash: int) -> None:
        self.replay.add(position, sticky_hash)

    def _dropped(self, _: Consumer, position: Place, __: int, ___: int) -> None:
        self._redeliveries.pop(position)

    def cursor_moved(self, before: Position) -> None:
        """Forget what is acknowledged: it leaves the consumers that have it."""
        mark = self._cursor.mark_delete
        if self.delayed:
            self.delayed.discard_through(mark)
            if not self.delayed:
                self._forget_delayed()
        if not self.consumers:
            return  # Nobody has anything, and nobody would take it off the list.
        if self._ledger.count(before, mark) <= LEAVING_A_TURN:
            self.replay.discard_through(mark)
            # Named at once: their ledgers may be dropped next.
            passed = list(self._between(before, mark))
            self._leaving.append(_Leaving(None, iter(passed), self._dropped))
        elif not self._looks_through_all:
            self._looks_through_all = True
            self._leaving.append(_Leaving(None, self._all_passed(), self._dropped))
        self.wake()

    def _between(self, before: Position, last: Position) -> Iterator[Position]:
        position = self._ledger.following(before)
        while position <= last:
            yield position
            position = self._ledger.following(position)

    def _all_passed(self) -> Iterator[Place]:
        """Yield what waits or consumers have though it is acknowledged, from the first turn on."""
        self._looks_through_all = False
        mark = self._cursor.mark_delete
        yield from self.replay.discarded(mark)
        yield from self._holders.through(mark)
        yield from self._redeliveries.through(mark)

    # -- consumers ----------------------------------------------------------------------------

    def add(self, consumer: Consumer) -> None:
        """Take a consumer."""
        if not self.consumers:
            self._cursor.rewind()
        self._last_number += 1
        consumer.number = self._last_number
        self._members[consumer.number] = consumer
        self.consumers.append(consumer)
        if len(self.consumers) > 1 and consumer.priority_level < self.consumers[-2].priority_level:
            # A SEEK closes them in this order (recorded).
            self.consumers.sort(key=lambda one: one.priority_level)
        self._levels = None
        self.wake()

    def _sorted(self) -> dict[int, list[Consumer]]:
        """Return the consumers by level, the highest first, as they stand in the list."""
        levels: dict[int, list[Consumer]] = {}
        for consumer in self.consumers:
            levels.setdefault(consumer.priority_level, []).append(consumer)
        return levels

    def remove(self, consumer: Consumer) -> None:
        """Let a consumer go; what it did not acknowledge goes to others, counts unchanged."""
        self.consumers.remove(consumer)
        self._given_back_already.pop(consumer, None)
        self._gave_back_all.discard(consumer)
        self._more_follow.discard(consumer)
        self._levels = None
        if not self.consumers:
            self._forget_all()
            return
        self._leaving.append(_Leaving(consumer, self._all_it_had(consumer), self._given_back))
        self.wake()

    def _all_it_had(self, consumer: Consumer) -> Iterator[Place]:
        """Yield what a consumer had that is gone, until nothing is left; then forget it."""
        while place := consumer.pending.any_place():
            yield place
        self._has_gone(consumer)

    def _has_gone(self, consumer: Consumer) -> None:
        """Forget a consumer that left, and of which nobody has anything any more."""
        del self._members[consumer.number]

    def remove_all(self) -> None:
        """Let all consumers go at once: nobody is left for whom to share out what they had."""
        self.consumers.clear()
        self._levels = None
        self._forget_all()

    def _forget_all(self) -> None:
        """Begin anew with the next consumer: at the first entry that is not acknowledged."""
        free = self._context.turns.in_steps
        for consumer in self._members.values():
            if consumer.pending:
                free(consumer.pending.emptied())
                consumer.pending = PlaceMap()
        for old in (self._holders, self._redeliveries, self.replay):
            free(old.emptied())
        self._holders, self._redeliveries, self.replay = PlaceMap(), PlaceMap(), ReplayQueue()
        self._members.clear()
        self._leaving.clear()
        self._looks_through_all = False
        self._given_back_already.clear()
        self._gave_back_all.clear()
        self._more_follow.clear()
        self.unacked, self.blocked = 0, False
        self._next_in.clear()
        self._waiting_for = 0
        self._forget_delayed()
        self._disarm()
        self._cursor.rewind()

    # -- delayed delivery ---------------------------------------------------------------------

    def _forget_delayed(self) -> None:
        old, self.delayed = self.delayed, self._no_delays(self._context)
        self._context.turns.in_steps(old.emptied())

    def _arm(self, now_ms: int) -> None:
        wait_ms = self.delayed.next_due(now_ms)
        if wait_ms is None or (self._timer is not None and self._due_ms <= now_ms + wait_ms):
            return
        self._disarm()
        clock = self._context.topic.clock
        self._due_ms = now_ms + wait_ms
        self._timer = clock.call_at(clock.now() + wait_ms / 1000, self._due)

    def _due(self) -> None:
        self._timer = None
        now_ms = self._context.topic.clock.wall_ms()
        self.replay.add_all(self.delayed.take_due(now_ms))
        self._arm(now_ms)
        self.wake()

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def close(self) -> None:
        """End its timers."""
        super().close()
        self._disarm()
