"""The base of dispatchers that know which consumer holds each unacknowledged entry."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from broker.messages.subscriptions.dispatchers.dispatcher import Dispatcher, Place
from broker.messages.subscriptions.place_map import NOTHING, PlaceMap
from broker.messages.subscriptions.position_set import PositionSet
from broker.messages.subscriptions.replay import ReplayQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from broker.messages.position import Position
    from broker.messages.subscriptions.consumer import AnySubscription, Consumer
    from broker.policies.rate_limiter import RateLimiter

HASH_BITS = 17
"""The bits of the key's hash in a pending entry's number, below the remaining messages.

A tuple per entry would take three times the memory, and the garbage collector's time.
"""
HASHES = (1 << HASH_BITS) - 1
"""The mask of the key hash's bits; a hash of 0 means no hash."""
LEAVING_A_TURN = 1_000
"""The largest number of entries taken back from consumers in one event-loop turn."""


class _Leaving(NamedTuple):
    """A request to take entries back from the consumers that hold them.

    Attributes:
        consumer: The present or past holder; None: the current holder of each entry.
        positions: The entries; some may be acknowledged meanwhile.
        then: Called with consumer, entry, the remaining messages, and the hash of the key.
    """

    consumer: Consumer | None
    positions: Iterator[Place]
    then: Callable[[Consumer, Place, int, int], None]


class HoldingDispatcher(Dispatcher):
    """A dispatcher that knows which consumer holds each unacknowledged entry.

    Attributes:
        replay: The queue of entries that were read already, and wait for delivery or redelivery.
        unacked: The number of unacknowledged messages of all consumers.
        blocked: True if there are too many unacknowledged messages to read further entries.
    """

    def __init__(self, subscription: AnySubscription, topic_rate: RateLimiter) -> None:
        self.replay = ReplayQueue()
        self._redeliveries = PlaceMap()
        self._leaving: deque[_Leaving] = deque()
        # A check of all pending entries is queued above; one check serves many skips.
        self._looks_through_all = False
        # Holder numbers of entries, kept until all entries of a consumer are taken back.
        self._holders = PlaceMap()
        self._members: dict[int, Consumer] = {}
        self._last_number = 0
        # Returned entries of each consumer still queued above. Prevents a client from queueing a
        # list of all pending entries with each repeated command.
        self._given_back_already: dict[Consumer, PositionSet] = {}
        # Consumers with a large redelivery command being processed in steps.
        self._more_follow: set[Consumer] = set()
        # Consumers with all entries queued above.
        self._gave_back_all: set[Consumer] = set()
        self.unacked = 0
        self.blocked = False
        super().__init__(subscription, topic_rate)

    # -- holders of entries -------------------------------------------------------------------

    def _joins(self, consumer: Consumer) -> None:
        self._last_number += 1
        consumer.number = self._last_number
        self._members[consumer.number] = consumer

    def _gets(self, consumer: Consumer, place: Place, messages: int, sticky_hash: int) -> None:
        """Record that an entry is sent to a consumer, which holds it until it is acknowledged."""
        consumer.pending.put(place, messages << HASH_BITS | sticky_hash)
        self._holders.put(place, consumer.number)
        policies = self._topic.policies
        consumer.unacked += messages
        self.unacked += messages
        if 0 < self._most_unacked <= consumer.unacked:
            consumer.blocked = True
        if 0 < policies.max_unacked_per_subscription <= self.unacked:
            self.blocked = True

    @property
    def _most_unacked(self) -> int:
        """The largest number of a consumer's unacknowledged messages; 0 for no limit."""
        return self._topic.policies.max_unacked_per_consumer if self._cursor.durable else 0

    def _has_less(self, consumer: Consumer, messages: int) -> None:
        policies = self._topic.policies
        consumer.unacked -= messages
        self.unacked -= messages
        if consumer.blocked and consumer.unacked <= self._most_unacked // 2:
            consumer.unblock()
            self.wake()
        if self.blocked and self.unacked < max(1, policies.max_unacked_per_subscription // 2):
            self.blocked = False
            self.wake()

    def acknowledged(
        self, consumer: Consumer, position: Position, newly: int, *, done: bool
    ) -> None:
        """Remove acknowledged messages from their holder, even if another consumer sent the ACK."""
        if not done:
            self._acknowledged_in_part(position, newly)
        elif (number := self._holders.pop(position)) != NOTHING:
            holder = self._members[number]
            held = holder.pending.pop(position)
            if self._given_back_already:
                self._has_left(holder, position)
            self._let_go(holder, held & HASHES)
            self._has_less(holder, held >> HASH_BITS)
        # Also with remaining messages of a batch, or while waiting for redelivery (recorded).
        if self._redeliveries:
            self._redeliveries.pop(position)

    def _acknowledged_in_part(self, position: Place, newly: int) -> None:
        holder = self._holder_of(position)
        if holder is None:
            return
        if self._is_given_back(holder, position):
            # Returned first, so the redelivery count rises before the entry is forgotten.
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
        """Update the state after a consumer stops holding an entry with a key hash."""

    def redeliver(
        self, consumer: Consumer, positions: Iterable[Place] | None, *, more: bool = False
    ) -> None:
        """Redeliver a consumer's pending entries, and increase their redelivery counts.

        The consumer may receive messages again, however many it has not acknowledged.
        """
        if consumer not in self.consumers:
            return  # Closed while the command was processed in steps.
        consumer.unblock()
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
        """Yield a consumer's pending entries until none is left.

        No entries are delivered to consumers meanwhile.
        """
        while place := consumer.pending.any_place():
            yield place
        self._gave_back_all.discard(consumer)

    def _not_yet_given_back(self, consumer: Consumer, positions: Iterable[Place]) -> list[Place]:
        already = self._given_back_already.setdefault(consumer, PositionSet())
        new = [at for at in positions if at in consumer.pending and already.add(at)]
        if not already:
            del self._given_back_already[consumer]
        return new

    def _let_leave(self) -> int:
        """Take some entries back from consumers, as queued requests demand; return their number."""
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
                if taken >= LEAVING_A_TURN:
                    return taken
            self._leaving.popleft()
        return taken

    def _leaves(
        self, consumer: Consumer, position: Place, then: Callable[[Consumer, Place, int, int], None]
    ) -> None:
        """Take an entry back from a consumer, if the consumer still holds it."""
        held = consumer.pending.pop(position)
        self._has_left(consumer, position)
        if held != NOTHING:
            left, sticky_hash = held >> HASH_BITS, held & HASHES
            self._holders.pop(position)
            self._has_less(consumer, left)
            then(consumer, position, left, sticky_hash)
            self._let_go(consumer, sticky_hash)

    def _is_given_back(self, consumer: Consumer, position: Place) -> bool:
        """Return True if a consumer's pending entry is already queued for redelivery."""
        already = self._given_back_already.get(consumer, ())
        return consumer in self._gave_back_all or position in already

    def _has_left(self, consumer: Consumer, position: Place) -> None:
        """Forget that an entry was queued for redelivery, as its consumer no longer holds it."""
        already = self._given_back_already.get(consumer)
        if already is not None:
            already.discard(position)
            if not already:
                del self._given_back_already[consumer]

    def _redelivered(
        self, consumer: Consumer, position: Place, left: int, sticky_hash: int
    ) -> None:
        if self._cursor.is_acknowledged(position):
            return  # Skipped or expired in the current turn.
        self._redeliveries.put(position, self._redeliveries.get(position, 0) + 1)
        consumer.messages_redelivered += left
        self.replay.add(position, sticky_hash)

    def _given_back(self, _: Consumer, position: Place, __: int, sticky_hash: int) -> None:
        self.replay.add(position, sticky_hash)

    def _dropped(self, _: Consumer, position: Place, __: int, ___: int) -> None:
        self._redeliveries.pop(position)

    def cursor_moved(self, before: Position) -> None:
        """Forget the entries that the cursor has passed, and take them from their consumers."""
        mark = self._cursor.mark_delete
        if not self.consumers:
            return  # Without consumers no entry is pending.
        if self._ledger.count(before, mark) <= LEAVING_A_TURN:
            self.replay.discard_through(mark)
            # Collected now, because the ledgers may be dropped next.
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
        """Yield all positions up to the mark-delete position that are still queued or pending."""
        self._looks_through_all = False
        mark = self._cursor.mark_delete
        yield from self.replay.discarded(mark)
        yield from self._holders.through(mark)
        yield from self._redeliveries.through(mark)

    # -- removal of consumers -----------------------------------------------------------------

    def _begins_to_leave(self, consumer: Consumer) -> None:
        """Redeliver a removed consumer's entries, without increasing redelivery counts."""
        self._given_back_already.pop(consumer, None)
        self._gave_back_all.discard(consumer)
        self._more_follow.discard(consumer)
        self._leaving.append(_Leaving(consumer, self._all_it_had(consumer), self._given_back))

    def _all_it_had(self, consumer: Consumer) -> Iterator[Place]:
        """Yield a removed consumer's pending entries until none is left; then forget it."""
        while place := consumer.pending.any_place():
            yield place
        self._has_gone(consumer)

    def _has_gone(self, consumer: Consumer) -> None:
        del self._members[consumer.number]

    def _forget_all(self) -> None:
        """Reset the state after the last consumer left; memory is freed in steps."""
        free = self._topic.turns.in_steps
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
