"""The subscriptions of one topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.messages.position import EARLIEST, LATEST, Position, from_wire
from broker.subscriptions.cursor import ManagedCursor
from broker.subscriptions.dispatch_rate import RateLimiter
from broker.subscriptions.subscription import Subscription, SubType
from server.connection.request_errors import RequestError
from server.tasks.shared_turns import SharedTurns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from broker.subscriptions.consumer import Consumer
    from broker.subscriptions.context import (
        SubscribedTopic,
        SubscriptionRules,
        TopicWithPolicies,
    )
    from limiter.clock import TimerHandle

SAVE_SECONDS = 1.0
"""Cursors that have changed are saved so often (managedLedgerDefaultMarkDeleteRateLimit: 1/s)."""
RETURN_SECONDS = 30.0
"""How long a subscription that is not durable waits for consumers that a SEEK closed."""
INTERNAL = frozenset(("pulsar.dedup",))
"""Cursors of the broker's own, that are no subscriptions."""


class Subscriptions:
    """The subscriptions of one topic by name, as its ledger keeps them and as clients make them."""

    def __init__(
        self,
        topic: SubscribedTopic,
        rules: SubscriptionRules,
        turns: SharedTurns | None = None,
    ) -> None:
        self._topic = topic
        self.rules = rules
        self.turns = turns or SharedTurns()
        self.topic_rate = RateLimiter(topic.policies.dispatch_rate, topic.clock)
        self._by_name: dict[str, Subscription] = {}
        self._timer: TimerHandle | None = None
        for name, state in topic.ledger.cursors.items():
            if name not in INTERNAL:
                cursor = ManagedCursor.recovered(topic.ledger, name, state)
                self._by_name[name] = Subscription(name, topic, cursor, self)

    def __iter__(self) -> Iterator[Subscription]:
        return iter(list(self._by_name.values()))

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def get(self, name: str) -> Subscription | None:
        """Return a subscription; None if there is none, or it only waits for consumers."""
        found = self._by_name.get(name)
        return None if found is None or found.left else found

    # -- making and deleting ------------------------------------------------------------------

    async def open(self, asked: pb.CommandSubscribe) -> Subscription:
        """Return the subscription that a client names, created and stored if need be.

        Raises:
            RequestError: It may not be created, or the policies of the topic refuse it.
        """
        check_policies(self._topic, self.consumer_count, asked)
        found = self._by_name.get(asked.subscription)
        if found is not None:
            _check_durability(found, durable=asked.durable)
            if asked.start_message_rollback_duration_sec > 0:
                found.seek(self._rolled_back(asked))  # Others who have it are closed (recorded).
            found.awaits_return = False
            return found
        if asked.durable and not self._topic.policies.auto_subscription_creation:
            raise RequestError(pb.SubscriptionNotFound, "Subscription does not exist")
        created = self.create(
            asked.subscription,
            earliest=asked.initialPosition == pb.CommandSubscribe.Earliest,
            start=self._start(asked),
            durable=asked.durable,
            properties={one.key: one.value for one in asked.subscription_properties},
        )
        if asked.durable:
            await self._topic.ledger.flushed()
        return self._by_name.get(asked.subscription) or created

    def _start(self, asked: pb.CommandSubscribe) -> Position | None:
        """Return the entry that a new subscription begins with, if it says so otherwise."""
        if asked.start_message_rollback_duration_sec > 0:
            return self._rolled_back(asked)
        if not asked.durable and asked.HasField("start_message_id"):
            start = from_wire(asked.start_message_id.ledgerId, asked.start_message_id.entryId)
            # Of one behind the end the initial position decides (recorded).
            before = Position(start.ledger_id, start.entry_id - 1)
            return start if before <= self._topic.ledger.last_confirmed else None
        return None

    def _rolled_back(self, asked: pb.CommandSubscribe) -> Position:
        """Return the first entry of the time that a client wants to hear of again."""
        back_ms = asked.start_message_rollback_duration_sec * 1000
        return self._topic.ledger.published_at(self._topic.clock.wall_ms() - back_ms)

    def create(
        self,
        name: str,
        *,
        earliest: bool = False,
        start: Position | None = None,
        durable: bool = True,
        properties: Mapping[str, str] | None = None,
    ) -> Subscription:
        """Create a subscription.

        Args:
            name: Its name; none has it yet.
            earliest: Begin at the first entry, otherwise behind the last.
            start: Begin at this entry instead.
            durable: Keep it when its consumers are gone.
            properties: Its own.

        Raises:
            RequestError: The topic has as many as it may have.
        """
        most = self._topic.policies.max_subscriptions
        if 0 < most <= len(self._by_name):
            text = f"Exceed the maximum number of subscriptions of the topic: {self._topic.name}"
            raise RequestError(pb.NotAllowedError, text)
        first = start if start is not None else (EARLIEST if earliest else LATEST)
        cursor = ManagedCursor(
            self._topic.ledger,
            name,
            self._mark_before(first),
            durable=durable,
            properties=properties,
        )
        subscription = self._by_name[name] = Subscription(name, self._topic, cursor, self)
        cursor.save()
        return subscription

    def _mark_before(self, first: Position) -> Position:
        """Return the mark-delete of a cursor whose next entry is this one."""
        ledger = self._topic.ledger
        last = ledger.last_confirmed
        return last if first > last else ledger.preceding(first)

    def delete(self, name: str) -> None:
        """Delete a subscription; its consumers are gone or closed already."""
        subscription = self._by_name.pop(name, None)
        if subscription is not None:
            subscription.close()
            if subscription.durable:
                self._topic.ledger.delete_cursor(name)
            self.moved()

    def became_empty(self, subscription: Subscription) -> None:
        """Delete a subscription that is not durable, unless its consumers are to come again."""
        if subscription.durable:
            return
        if subscription.awaits_return:
            clock = self._topic.clock
            clock.call_at(clock.now() + RETURN_SECONDS, self._forget_unused, subscription)
        else:
            self.delete(subscription.name)

    def _forget_unused(self, subscription: Subscription) -> None:
        if self._by_name.get(subscription.name) is subscription and not subscription.consumers:
            self.delete(subscription.name)

    # -- what the topic tells -----------------------------------------------------------------

    def entries_added(self) -> None:
        """Deliver what was stored."""
        for subscription in list(self._by_name.values()):
            subscription.entries_added()

    def terminated(self) -> None:
        """Tell the consumers that have everything that no more comes."""
        for subscription in self:
            subscription.tell_end()

    def policies_changed(self) -> None:
        """Follow the policies that are in force now."""
        self.topic_rate.change(self._topic.policies.dispatch_rate)
        for subscription in self:
            subscription.policies_changed()

    def close_consumers(self) -> None:
        """Close all consumers, and tell their clients."""
        for subscription in self:
            subscription.close_consumers()

    @property
    def consumers(self) -> Iterator[Consumer]:
        """The consumers of all of them."""
        for subscription in self:
            yield from subscription.consumers

    @property
    def consumer_count(self) -> int:
        """How many consumers are connected."""
        return sum(len(one.consumers) for one in self._by_name.values())

    @property
    def slowest(self) -> Position:
        """The first entry that a durable subscription still needs; behind the last for none."""
        ledger = self._topic.ledger
        needed = [one.cursor.first_left for one in self._by_name.values() if one.durable]
        return min(needed, default=ledger.following(ledger.last_confirmed))

    def update_rates(self, seconds: float) -> None:
        """End a period of the statistics."""
        for consumer in self.consumers:
            consumer.update_rates(seconds)

    def clear_backlogs(self) -> None:
        """Move all cursors to the end."""
        for subscription in self:
            subscription.skip_through(self._topic.ledger.last_confirmed)

    def moved(self) -> None:
        """Drop ledgers that nobody needs any more, as far as retention allows."""
        retention = self._topic.policies.retention
        now_ms = self._topic.clock.wall_ms()
        keep_since = 0 if retention.minutes < 0 else now_ms - retention.minutes * 60_000
        keep_bytes = retention.megabytes * 1024 * 1024 if retention.megabytes >= 0 else -1
        self._topic.ledger.trim(self.slowest, keep_bytes, keep_since)

    # -- saving -------------------------------------------------------------------------------

    def save(self) -> None:
        """Let the ledger keep the cursors that have changed."""
        for subscription in self._by_name.values():
            subscription.cursor.save()

    def changed(self) -> None:
        """Save within a second: a cursor has changed."""
        if self._timer is None:
            clock = self._topic.clock
            self._timer = clock.call_at(clock.now() + SAVE_SECONDS, self._save_due)

    def _save_due(self) -> None:
        self._timer = None
        self.save()

    def close(self) -> None:
        """Save, and end all timers."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.save()
        for subscription in self:
            subscription.close()


def check_policies(
    topic: TopicWithPolicies, consumer_count: int, asked: pb.CommandSubscribe
) -> None:
    """Refuse a consumer that the policies of its topic do not allow.

    Args:
        topic: Its topic.
        consumer_count: As many consumers the topic has.
        asked: What its client asks for.

    Raises:
        RequestError: Its type is not allowed, or there are too many.
    """
    policies, type_name = topic.policies, SubType.Name(asked.subType)
    if type_name not in policies.subscription_types:
        text = f"Topic[{{{topic.name}}}] doesn't support {type_name} sub type!"
        raise RequestError(pb.NotAllowedError, text)
    if 0 < policies.max_consumers <= consumer_count:
        raise RequestError(pb.ConsumerBusy, "Topic reached max consumers limit")


def _check_durability(found: Subscription, *, durable: bool) -> None:
    if found.durable is not durable and not found.left:
        kind = "Durable" if found.durable else "NonDurable"
        text = f"{kind} subscription with the same name already exists."
        raise RequestError(pb.NotAllowedError, text)
