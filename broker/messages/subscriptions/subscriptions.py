"""The set of subscriptions of one persistent topic."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.messages.deduplication import CURSOR
from broker.messages.position import EARLIEST, LATEST, Position, from_wire
from broker.messages.subscriptions.by_name import SubscriptionsByName
from broker.messages.subscriptions.consumer import SubType
from broker.messages.subscriptions.cursor import ManagedCursor
from broker.messages.subscriptions.subscription import Subscription
from broker.policies.rate_limiter import ConsumerIdentifier, RateLimiter, SubscribeRateLimiter
from limiter.clock import Timer
from server.connection.request_errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from broker.messages.subscriptions.context import (
        SubscribedTopic,
        TopicWithPolicies,
    )
    from limiter.clock import TimerHandle

SAVE_SECONDS = 1.0
"""The interval in seconds at which changed cursors are saved
(managedLedgerDefaultMarkDeleteRateLimit: 1/s)."""
RETURN_SECONDS = 30.0
"""The seconds for which a non-durable subscription's cursor is kept after a SEEK."""
MOST_LEFT = 1_000
"""The largest number of non-durable cursors kept per topic; above it, the oldest is forgotten."""
_TOO_OFTEN = "Subscribe limited by subscribe rate limit per consumer."
INTERNAL = frozenset((CURSOR,))
"""Names of the broker's internal cursors, which have no subscription."""


class ClosedWithOthersError(Exception):
    """A SUBSCRIBE with a rollback has closed the new consumer and all other consumers.

    The subscription existed, and was not durable.
    """


class Subscriptions(SubscriptionsByName[Subscription]):
    """The subscriptions of a persistent topic by name, restored from the ledger or new."""

    def __init__(self, topic: SubscribedTopic) -> None:
        super().__init__()
        self._topic = topic
        self.topic_rate = RateLimiter(
            topic.policies.dispatch_rate, topic.clock, published=lambda: topic.statistics.usual
        )
        self._subscribe_rate = SubscribeRateLimiter(topic.policies.subscribe_rate, topic.clock)
        # Cursors of non-durable subscriptions closed by a SEEK, awaiting their consumers.
        self._left: dict[str, tuple[ManagedCursor, TimerHandle]] = {}
        self._timer = Timer(topic.clock)
        self._is_closed = False
        # The slowest subscription's ledger at the last check, a subscription still in the ledger,
        # and unchecked candidates: with 1,000 subscriptions a full check takes time, and many may
        # move together.
        self._held = -1
        self._holder: Subscription | None = None
        self._others: Iterator[Subscription] = iter(())
        for name, state in topic.ledger.cursors.items():
            if name not in INTERNAL:
                cursor = ManagedCursor.recovered(topic.ledger, name, state)
                self._by_name[name] = Subscription(name, topic, cursor, self)

    def get(self, name: str) -> Subscription | None:
        """Return the subscription with the given name, or None."""
        return self._by_name.get(name)

    # -- making and deleting ------------------------------------------------------------------

    async def open(self, asked: pb.CommandSubscribe, host: str) -> Subscription:
        """Return the subscription that a client requests, after creating it if missing.

        Raises:
            RequestError: See SubscriptionsByName.
            ClosedWithOthersError: The consumer is closed, if ``SubscriptionRules`` demand that.
        """
        consumer = ConsumerIdentifier(host, asked.consumer_name, asked.consumer_id)
        if not self._subscribe_rate.take(consumer):
            raise RequestError(pb.NotAllowedError, _TOO_OFTEN)
        # Awaited first, because the subscription may be deleted or created meanwhile.
        rolled_back = await self._rolled_back(asked)
        check_room(self._topic, self.consumer_count)
        found = self._by_name.get(asked.subscription)
        if found is not None:
            _check_durability(found, durable=asked.durable)
            if found.durable and found.awaits_return:
                # A client drops its messages on the answer to SEEK: messages of the new position
                # must not arrive earlier.
                await self._topic.ledger.flushed()
            if rolled_back is not None:
                found.seek(rolled_back)  # Closes its other consumers (recorded).
                if self._topic.rules.closes_who_rolls_back and not found.durable:
                    raise ClosedWithOthersError
            return found
        created = self.create(
            asked.subscription,
            earliest=asked.initialPosition == pb.CommandSubscribe.Earliest,
            start=self._start(asked) if rolled_back is None else rolled_back,
            durable=asked.durable,
            # Of a repeated key the first value counts (recorded).
            properties={one.key: one.value for one in reversed(asked.subscription_properties)},
        )
        if asked.durable:
            await self._topic.ledger.flushed()
        return self._by_name.get(asked.subscription) or created

    def _start(self, asked: pb.CommandSubscribe) -> Position | None:
        """Return the first entry that a new non-durable subscription requests, or None."""
        if not asked.durable and asked.HasField("start_message_id"):
            start = from_wire(asked.start_message_id.ledgerId, asked.start_message_id.entryId)
            # For an entry beyond the end the initial position decides (recorded).
            before = Position(start.ledger_id, start.entry_id - 1)
            return start if before <= self._topic.ledger.last_confirmed else None
        return None

    async def _rolled_back(self, asked: pb.CommandSubscribe) -> Position | None:
        """Return the first entry published since the rollback time that a client requests.

        Return None if the client requests no rollback.
        """
        if asked.start_message_rollback_duration_sec <= 0:
            return None
        back_ms = asked.start_message_rollback_duration_sec * 1000
        return await self._topic.ledger.published_at(self._topic.clock.wall_ms() - back_ms)

    def create(
        self,
        name: str,
        *,
        earliest: bool = False,
        start: Position | None = None,
        durable: bool = True,
        properties: Mapping[str, str] | None = None,
        limited: bool = True,
    ) -> Subscription:
        """Create a subscription with a new cursor.

        Args:
            name: The name, which no subscription has yet.
            earliest: True to start at the first entry, False to start after the last entry.
            start: The entry to start at, whatever ``earliest`` is; None for no such entry.
            durable: True to keep the subscription while it has no consumers.
            properties: The subscription's properties.
            limited: True to enforce the limit of subscriptions; False for internal subscriptions.

        Raises:
            RequestError: The limit is reached, or the name is reserved.
        """
        if name in INTERNAL:
            raise reserved_name()
        most = self._topic.policies.max_subscriptions
        if limited and 0 < most <= len(self._by_name):
            text = f"Exceed the maximum number of subscriptions of the topic: {self._topic.name}"
            raise RequestError(pb.NotAllowedError, text)
        first = start if start is not None else (EARLIEST if earliest else LATEST)
        cursor = self._take_left(name) or ManagedCursor(
            self._topic.ledger,
            name,
            self._mark_before(first),
            durable=durable,
            properties=properties,
        )
        subscription = self._by_name[name] = Subscription(name, self._topic, cursor, self)
        self._topic.touched()
        cursor.save()
        return subscription

    def _mark_before(self, first: Position) -> Position:
        """Return the mark-delete position of a new cursor whose next entry is ``first``."""
        ledger = self._topic.ledger
        last = ledger.last_confirmed
        return last if first > last else ledger.preceding(first)

    def delete(self, name: str) -> None:
        """Delete a subscription, whose consumers are disconnected already."""
        subscription = self._by_name.pop(name, None)
        if subscription is not None:
            self._topic.touched()
            self._has_gone(subscription)
            subscription.close()
            if subscription.durable:
                self._topic.ledger.delete_cursor(name)
                subscription.forget()
            if subscription.internal:
                self._topic.compaction.forget()
            self.moved()

    def became_empty(self, subscription: Subscription) -> None:
        """Delete a subscription that has lost its last consumer, unless it is durable.

        After a SEEK the cursor is kept for the next consumer that subscribes with the same name;
        that subscription becomes non-durable, even if the client asks for a durable one. A real
        broker keeps the cursor as long as the topic.
        """
        if subscription.durable:
            return
        name, cursor = subscription.name, subscription.cursor
        self.delete(name)
        if not subscription.awaits_return:
            subscription.forget()
        else:
            if len(self._left) >= MOST_LEFT:
                self._take_left(next(iter(self._left)))
            clock = self._topic.clock
            timer = clock.call_at(clock.now() + RETURN_SECONDS, self._take_left, name)
            self._left[name] = cursor, timer

    def keeps(self, subscription: Subscription) -> bool:
        """Return True if a new SUBSCRIBE would get this subscription or its cursor."""
        name = subscription.name
        left, _ = self._left.get(name, (None, None))
        is_here = self._by_name.get(name) is subscription or left is subscription.cursor
        return is_here and not self._is_closed

    def _take_left(self, name: str) -> ManagedCursor | None:
        cursor, timer = self._left.pop(name, (None, None))
        if timer is not None:
            timer.cancel()
        return cursor

    # -- notifications of the topic -----------------------------------------------------------

    def entries_added(self) -> None:
        """Deliver new entries to the consumers of all subscriptions."""
        for subscription in self:
            subscription.entries_added()

    def terminated(self) -> None:
        """Tell consumers without remaining messages that the topic is terminated."""
        for subscription in self:
            subscription.tell_end()

    def policies_changed(self) -> None:
        """Apply the topic's changed policies to all subscriptions."""
        self.topic_rate.change(self._topic.policies.dispatch_rate)
        self._subscribe_rate.change(self._topic.policies.subscribe_rate)
        for subscription in self:
            subscription.policies_changed()

    @property
    def slowest(self) -> Position:
        """The position of the first entry that any durable subscription needs.

        The value is the position after the last entry if all entries are acknowledged.
        """
        ledger = self._topic.ledger
        needed = [one.cursor.first_left for one in self._by_name.values() if one.durable]
        return min(needed) if needed else ledger.following(ledger.last_confirmed)

    def clear_backlogs(self, *, internal: bool) -> None:
        """Acknowledge all entries in all subscriptions; skip internal ones unless ``internal``."""
        for subscription in self:
            if internal or not subscription.internal:
                subscription.skip_through(self._topic.ledger.last_confirmed)

    def left_entries(self) -> None:
        """Delete the ledgers whose entries no subscription needs any more."""
        while self._holder is not None and not self._still_holds(self._holder):
            self._holder = next(self._others, None)
        if self._holder is None:
            self.moved()
            self._held = self.slowest.ledger_id
            self._others = iter(self)
            self._holder = next(filter(self._still_holds, self._others), None)

    def _still_holds(self, subscription: Subscription) -> bool:
        is_here = self._by_name.get(subscription.name) is subscription and subscription.durable
        return is_here and subscription.cursor.first_left.ledger_id <= self._held

    def moved(self) -> None:
        """Delete ledgers that no subscription needs, as far as retention allows."""
        bounds = self._topic.policies.retention.bounds(self._topic.clock.wall_ms())
        self._topic.ledger.trim(self._needed, *bounds)

    def trimmed_at_ms(self) -> float:
        """Return when ``moved`` can next delete a ledger, in ms since 1970; inf for never.

        A ledger is deleted once no subscription needs it and its retention is over. The passage of
        time alone can only end the retention.
        """
        first, now_ms = self._topic.ledger.ledgers[0], self._topic.clock.wall_ms()
        retention = self._topic.policies.retention
        if not first.closed_at:
            return inf
        if self._topic.ledger.consumed(self._needed, *retention.bounds(now_ms)):
            return -inf
        ends_at = first.closed_at + retention.minutes * 60_000
        return ends_at if retention.minutes >= 0 and ends_at >= now_ms else inf

    @property
    def _needed(self) -> Position:
        """The position of the first entry that a subscription or internal cursor still needs."""
        ledger = self._topic.ledger
        ours = [ledger.cursors[name].mark_delete for name in INTERNAL if name in ledger.cursors]
        return min([self.slowest, *map(ledger.following, ours)])

    # -- saving -------------------------------------------------------------------------------

    def save(self) -> None:
        """Store all changed cursors in the ledger."""
        for subscription in self._by_name.values():
            subscription.cursor.save()

    def changed(self) -> None:
        """Schedule saving all changed cursors within a second."""
        if not self._is_closed:
            self._timer.arm(SAVE_SECONDS, self._save_due)

    def _save_due(self) -> None:
        self._topic.turns.in_steps(self._saved())

    def _saved(self) -> Iterator[None]:
        for subscription in self:
            is_here = self._by_name.get(subscription.name) is subscription
            if subscription.cursor.changed and is_here and not self._is_closed:
                subscription.cursor.save()
                yield

    def forget(self) -> None:
        """Free the memory of all cursors in steps, because the topic is unloaded."""
        for subscription in self:
            subscription.forget()

    def close(self) -> None:
        """Stop all timers, without saving cursors; ``save`` does that."""
        self._is_closed = True
        self._timer.stop()
        for subscription in self:
            subscription.close()
        for name in tuple(self._left):
            self._take_left(name)


def reserved_name() -> RequestError:
    """Return the error for a subscription whose name is reserved for the broker."""
    text = "Subscription with reserved subscription name attempted"
    return RequestError(pb.ProducerBusy, text)


def check_type_allowed(topic: TopicWithPolicies, asked: pb.CommandSubscribe) -> None:
    """Refuse a consumer whose subscription type the topic's policies do not allow.

    Raises:
        RequestError: The type is disallowed.
    """
    type_name = SubType.Name(asked.subType)
    if type_name not in topic.policies.subscription_types:
        text = f"Topic[{{{topic.name}}}] doesn't support {type_name} sub type!"
        raise RequestError(pb.NotAllowedError, text)


def check_room(topic: TopicWithPolicies, consumer_count: int) -> None:
    """Refuse a consumer if the topic already has its maximum of consumers.

    Raises:
        RequestError: The limit is reached.
    """
    if 0 < topic.policies.max_consumers <= consumer_count:
        raise RequestError(pb.ConsumerBusy, "Topic reached max consumers limit")


def _check_durability(found: Subscription, *, durable: bool) -> None:
    if found.durable is not durable:
        kind = "Durable" if found.durable else "NonDurable"
        text = f"{kind} subscription with the same name already exists."
        raise RequestError(pb.NotAllowedError, text)
