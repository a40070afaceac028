"""Subscriptions of persistent topics, each with a cursor and consumers."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Protocol

import proto.PulsarApi_pb2 as pb
from broker.messages.compaction.topic_compaction import SUBSCRIPTION as COMPACTION
from broker.messages.position import from_wire
from broker.messages.subscriptions.consumer import AnySubscription, Consumer
from broker.messages.subscriptions.dispatchers.dispatcher import TOLD_A_STEP
from broker.messages.subscriptions.dispatchers.holding import HASH_BITS
from broker.messages.subscriptions.dispatchers.key_shared import KeySharedDispatcher
from broker.messages.subscriptions.dispatchers.shared import SharedDispatcher
from broker.messages.subscriptions.dispatchers.single_active import (
    FailoverDispatcher,
    SingleActiveDispatcher,
)
from server.configuration.addresses import NO_URLS, ServerUrls
from server.tasks.cooperative import in_parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from broker.messages.position import Position
    from broker.messages.subscriptions.consumer import ClientConnection, ConsumerOptions
    from broker.messages.subscriptions.context import Hashes, SubscribedTopic
    from broker.messages.subscriptions.cursor import ManagedCursor
    from broker.messages.subscriptions.dispatchers.dispatcher import Dispatcher
    from broker.policies.rate_limiter import RateLimiter

Exclusive, Shared = pb.CommandSubscribe.Exclusive, pb.CommandSubscribe.Shared
Failover, Key_Shared = pb.CommandSubscribe.Failover, pb.CommandSubscribe.Key_Shared
INDIVIDUALLY = frozenset((Shared, Key_Shared))
"""Subscription types whose consumers acknowledge messages individually."""


class SubscriptionOwner(Protocol):
    """The interface (typing Protocol) of a topic's subscriptions that each one of them calls.

    Attributes:
        topic_rate: The dispatch rate shared by the topic's subscriptions.
    """

    topic_rate: RateLimiter

    def changed(self) -> None:
        """Schedule saving the cursors that have changed."""

    def left_entries(self) -> None:
        """Delete the ledgers that no subscription needs any more."""

    def became_empty(self, subscription: Subscription) -> None:
        """Called when a subscription has lost its last consumer."""

    def keeps(self, subscription: Subscription) -> bool:
        """Return True if a new SUBSCRIBE would get this subscription or its cursor."""

    def delete(self, name: str) -> None:
        """Delete the subscription with the given name."""


class Subscription(AnySubscription):
    """A subscription of a persistent topic (upstream: PersistentSubscription).

    Attributes:
        type: The subscription type, which is kept after the last consumer has left.
        dispatcher: Delivers to the consumers; None before the first consumer.
        awaits_return: True after a SEEK has closed the consumers, which subscribe again; a
            non-durable subscription's cursor is kept meanwhile.
        total_expired: The number of entries expired since the topic was loaded.
        last_expired_at, last_flow_at, advanced_at: Time of the last expiry, the last permits, and
            the last advance of the mark-delete position, in ms since 1970; 0 for never.
    """

    def __init__(
        self,
        name: str,
        topic: SubscribedTopic,
        cursor: ManagedCursor,
        owner: SubscriptionOwner,
    ) -> None:
        super().__init__(name, topic)
        self._owner = owner
        self.cursor = cursor
        # Both are fixed: a durable subscription named so is the compaction's.
        self.durable = cursor.durable
        self.internal = name == COMPACTION and cursor.durable
        self.dispatcher: Dispatcher | None = None
        self.awaits_return = False
        self.total_expired = 0
        self.last_expired_at = 0
        self.last_flow_at = 0
        self.advanced_at = 0
        self._mark_delete_seen = cursor.mark_delete
        # Not stored: loading the topic counts as activity (recorded).
        self._active_at = topic.clock.now()

    @property
    def unused_since(self) -> float:
        """The clock's time when a durable subscription without consumers was last used.

        The value is inf if consumers are connected, for a non-durable subscription, and for
        compaction's subscription.
        """
        unused = self.durable and not self.consumers and not self.internal
        return self._active_at if unused else inf

    def _is_active(self) -> None:
        """Record that the subscription is in use.

        Called when a consumer comes or leaves, and when the cursor is reset.
        """
        self.topic.touched()
        self._active_at = self.topic.clock.now()

    @property
    def consumers(self) -> Sequence[Consumer]:
        """The connected consumers."""
        return self.dispatcher.consumers if self.dispatcher is not None else ()

    @property
    def awaited(self) -> bool:
        """True if a SEEK closed the consumers, and no consumer has subscribed again yet."""
        return self.awaits_return and self._owner.keeps(self)

    @property
    def ring(self) -> Hashes | None:
        """The assignment of key hashes to consumers; None if the type is not Key_Shared."""
        return self.dispatcher.ring if isinstance(self.dispatcher, KeySharedDispatcher) else None

    # -- consumers ----------------------------------------------------------------------------

    def add_consumer(self, cnx: ClientConnection, options: ConsumerOptions) -> Consumer:
        """Create a consumer for a client, and connect it to the subscription.

        Raises:
            RequestError: An Exclusive consumer is connected, or the types differ.
        """
        if self.dispatcher is None or not self.dispatcher.consumers:
            self._change_type(options)
        assert self.dispatcher is not None
        self._check_fits(options)
        consumer = Consumer(cnx, options, self, self.topic.name.partition_index)
        self.dispatcher.add(consumer)
        self.awaits_return = False
        self._is_active()
        return consumer

    def _change_type(self, options: ConsumerOptions) -> None:
        if self.type == options.type == Failover:
            return  # A pending change is announced to the new consumer (recorded).
        if self.dispatcher is not None:
            self.dispatcher.close()
        rate = self._owner.topic_rate
        if options.type == Exclusive:
            dispatcher: Dispatcher = SingleActiveDispatcher(self, rate)
        elif options.type == Failover:
            dispatcher = FailoverDispatcher(self, rate)
        elif options.type == Shared:
            dispatcher = SharedDispatcher(self, rate)
        else:
            dispatcher = KeySharedDispatcher(self, rate, options.key_shared)
        self.type, self.dispatcher = options.type, dispatcher

    def remove_consumer(self, consumer: Consumer) -> None:
        """Disconnect a consumer, and redeliver its unacknowledged entries."""
        if self.dispatcher is not None and consumer in self.dispatcher.consumers:
            self.dispatcher.remove(consumer)
            self._has_left(consumer, self.dispatcher)

    def _has_left(self, consumer: Consumer, dispatcher: Dispatcher) -> None:
        consumer.cnx.outbound.forget_listener(dispatcher.wake)
        # Another consumer of the same connection may also wait for writability.
        dispatcher.wake()
        self._count(consumer)
        self._is_active()
        if not dispatcher.consumers:
            self._owner.became_empty(self)

    def close_consumers(self, new_owner: ServerUrls = NO_URLS) -> None:
        """Disconnect all consumers and notify their clients, in steps if there are many.

        The entries pending at a consumer are not redelivered to the remaining consumers.
        """
        dispatcher = self.dispatcher
        if dispatcher is None or not dispatcher.consumers:
            return
        gone = list(dispatcher.consumers)
        dispatcher.remove_all()
        for consumer in gone:
            consumer.cnx.consumers.pop(consumer.consumer_id, None)
            self._count(consumer)
        self.topic.turns.in_steps(self._told(gone, dispatcher, new_owner))
        self._is_active()
        self._owner.became_empty(self)

    def _told(
        self, gone: list[Consumer], dispatcher: Dispatcher, new_owner: ServerUrls
    ) -> Iterator[None]:
        for some in in_parts(gone, TOLD_A_STEP):
            for consumer in some:
                consumer.cnx.outbound.forget_listener(dispatcher.wake)
                consumer.tell_closed(new_owner)
            yield

    # -- commands of consumers ----------------------------------------------------------------

    def flow(self, consumer: Consumer, permits: int) -> None:
        """Add message permits that a consumer's client has granted, and deliver entries."""
        assert self.dispatcher is not None
        consumer.flowed(permits)
        self.last_flow_at = consumer.last_flow_at
        self.dispatcher.wake()
        if self.topic.terminated:
            self.tell_end()

    def acknowledge(self, consumer: Consumer, ids: Iterable[pb.MessageIdData]) -> None:
        """Acknowledge single entries, or single messages within batches."""
        dispatcher, cursor, rules = self.dispatcher, self.cursor, self.topic.rules
        assert dispatcher is not None
        ledger_before = cursor.mark_delete.ledger_id
        by_index, ended = rules.acks_of_batch_indexes, False
        consumer.last_acked_at = self.topic.clock.wall_ms()
        for one in ids:
            position = from_wire(one.ledgerId, one.entryId)
            if rules.acks_end_behind_the_end and position > self.topic.ledger.last_confirmed:
                ended = True
            ack_set = one.ack_set
            if ack_set and not by_index:
                continue
            if position not in consumer.pending and not cursor.holds(position):
                dispatcher.acknowledged(consumer, position, 0, done=True)
                continue
            if ended:
                newly, done = 0, True
            elif ack_set:
                newly, done = self._acknowledge_part(position, ack_set)
            else:
                if not cursor.is_acknowledged(position):
                    cursor.acknowledge(position)
                newly, done = 0, True
            held = consumer.pending.get(position, 0) >> HASH_BITS
            consumer.messages_acked += max(1, held) if done else newly
            dispatcher.acknowledged(consumer, position, newly, done=done)
        self._after_ack(ledger_before)

    def _acknowledge_part(self, position: Position, ack_set: Sequence[int]) -> tuple[int, bool]:
        digest = self.topic.ledger.digest(position)
        if digest is None or self.cursor.is_acknowledged(position):
            return 0, True
        return self.cursor.acknowledge_part(position, digest.message_count, ack_set)

    def acknowledge_cumulatively(self, consumer: Consumer, one: pb.MessageIdData) -> None:
        """Acknowledge all entries up to an entry; no-op for Shared and Key_Shared."""
        if self.type in INDIVIDUALLY:
            return
        cursor, position = self.cursor, from_wire(one.ledgerId, one.entryId)
        ledger_before = cursor.mark_delete.ledger_id
        consumer.last_acked_at = self.topic.clock.wall_ms()
        consumer.messages_acked += 1
        if one.ack_set and self.topic.rules.acks_of_batch_indexes:
            if cursor.holds(position):
                cursor.acknowledge_through(self.topic.ledger.preceding(position))
                self._acknowledge_part(position, one.ack_set)
        elif not one.ack_set:
            left = self.topic.compaction.compacted if consumer.options.read_compacted else None
            compacted = left is not None and left.covers(position)
            cursor.acknowledge_through(position, compacted=compacted)
        self._after_ack(ledger_before)

    def _has_changed(self) -> None:
        """Schedule saving the changed cursor, and free the memory of acknowledged batches."""
        self.topic.touched()
        if self.cursor.mark_delete > self._mark_delete_seen:
            self.advanced_at = self.topic.clock.wall_ms()
        self._mark_delete_seen = self.cursor.mark_delete
        self._owner.changed()
        if self.cursor.batches.gone:
            self._free_forgotten()

    def _free_forgotten(self) -> None:
        self.topic.turns.in_steps(self.cursor.batches.freed())

    def _after_ack(self, ledger_before: int) -> None:
        self._has_changed()
        if self.cursor.mark_delete.ledger_id != ledger_before:
            self._owner.left_entries()
        if self.topic.terminated:
            self.tell_end()

    def redeliver(
        self,
        consumer: Consumer,
        ids: Sequence[pb.MessageIdData],
        epoch: int | None,
        *,
        more: bool = False,
    ) -> None:
        """Redeliver the given unacknowledged entries of a consumer; without ids, redeliver all.

        Exclusive and Failover subscriptions redeliver all unacknowledged entries in any case.
        """
        assert self.dispatcher is not None
        if epoch is not None and epoch > consumer.epoch and self.type not in INDIVIDUALLY:
            consumer.epoch = epoch
        # Plain tuples: entries not pending are ignored.
        positions = [(one.ledgerId, one.entryId) for one in ids] if ids else None
        self.dispatcher.redeliver(consumer, positions, more=more)

    # -- moving the cursor --------------------------------------------------------------------

    def seek(self, first: Position) -> None:
        """Deliver from the given position on, and close the consumers, which subscribe again.

        Of a Failover subscription only the active consumer is closed (recorded). The new position
        is saved immediately: a client whose SEEK has succeeded must not find the old position after
        a crash.
        """
        self.awaits_return = True
        self._is_active()  # Also for REST (recorded).
        dispatcher = self.dispatcher
        if isinstance(dispatcher, FailoverDispatcher):
            active = dispatcher.disconnect_active()
            if active is not None:
                self._has_left(active, dispatcher)
                active.close()
        else:
            self.close_consumers()
        if not self.internal:  # The compaction's SEEK succeeds without effect (recorded).
            self.cursor.reset(first)
            self.cursor.save()
            self._free_forgotten()
        self._owner.left_entries()

    def skip(self, entries: int) -> None:
        """Acknowledge the given number of oldest unacknowledged entries."""
        before = self.cursor.mark_delete
        self.cursor.skip(entries)
        self._moved(before)

    def skip_through(self, position: Position) -> None:
        """Acknowledge all entries up to a position."""
        before = self.cursor.mark_delete
        self.cursor.skip_through(position)
        self._moved(before)

    def _moved(self, before: Position) -> None:
        self._has_changed()
        self.cursor.save()
        if self.dispatcher is not None:
            self.dispatcher.cursor_moved(before)
        self._owner.left_entries()
        if self.topic.terminated:
            self.tell_end()

    async def expire_older(self, than_ms: int) -> int:
        """Acknowledge the entries published before the given time; return their number.

        Raises:
            MessageStoreError: The entries cannot be read.
        """
        ledger = self.topic.ledger
        return self.expire_through(ledger.preceding(await ledger.published_at(than_ms)))

    def expire_through(self, position: Position) -> int:
        """Acknowledge all entries up to a position as expired; return their number."""
        before = self.cursor.backlog
        if position > self.cursor.mark_delete:
            self.skip_through(position)
        expired = before - self.cursor.backlog
        if expired:
            self.total_expired += expired
            self.last_expired_at = self.topic.clock.wall_ms()
        return expired

    # -- notifications of the topic -----------------------------------------------------------

    def entries_added(self) -> None:
        """Deliver new entries to the consumers."""
        if self.dispatcher is not None:
            self.dispatcher.entries_added()

    def tell_end(self) -> None:
        """If the backlog is empty, tell consumers that the terminated topic has ended."""
        if self.dispatcher is not None and not self.cursor.backlog:
            untold = [one for one in self.consumers if not one.reached_end]
            self.dispatcher.tell(untold, Consumer.tell_end)

    def policies_changed(self) -> None:
        """Apply the topic's changed policies."""
        if self.dispatcher is not None:
            self.dispatcher.policies_changed()

    def delete(self) -> None:
        """Close all consumers, and delete the subscription."""
        self.awaits_return = False
        self.close_consumers()
        self._owner.delete(self.name)

    def forget(self) -> None:
        """Free the cursor's memory in steps, because the cursor is no longer needed."""
        self.cursor.batches.clear()
        self._free_forgotten()

    def close(self) -> None:
        """Stop all timers of the subscription."""
        if self.dispatcher is not None:
            self.dispatcher.close()
