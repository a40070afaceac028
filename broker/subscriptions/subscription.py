"""A subscription: its cursor, its consumers, and what they ask of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import proto.PulsarApi_pb2 as pb
from broker.messages.compaction.topic_compaction import SUBSCRIPTION as COMPACTION
from broker.messages.position import from_wire
from broker.subscriptions.consumer import Consumer
from broker.subscriptions.context import SubscriptionContext
from broker.subscriptions.dispatchers.dispatcher import TOLD_A_STEP
from broker.subscriptions.dispatchers.key_shared import KeySharedDispatcher
from broker.subscriptions.dispatchers.shared import SharedDispatcher
from broker.subscriptions.dispatchers.single_active import (
    FailoverDispatcher,
    SingleActiveDispatcher,
)
from broker.subscriptions.key_shared.fixed_ranges import FixedRanges
from server.configuration.addresses import NO_URLS, ServerUrls
from server.connection.request_errors import RequestError
from server.tasks.cooperative import in_parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from broker.messages.position import Position
    from broker.policies.effective import EffectivePolicies
    from broker.policies.rate_limiter import RateLimiter
    from broker.subscriptions.consumer import ClientConnection, ConsumerOptions
    from broker.subscriptions.context import SubscribedTopic, SubscriptionRules
    from broker.subscriptions.cursor import ManagedCursor
    from broker.subscriptions.dispatchers.dispatcher import Dispatcher
    from server.tasks.shared_turns import SharedTurns

SubType = pb.CommandSubscribe.SubType
Exclusive, Shared = pb.CommandSubscribe.Exclusive, pb.CommandSubscribe.Shared
Failover, Key_Shared = pb.CommandSubscribe.Failover, pb.CommandSubscribe.Key_Shared
INDIVIDUALLY = frozenset((Shared, Key_Shared))
"""Types whose consumers have messages of their own, each acknowledged by itself."""
NOT_ALONE = "Unconnected or shared consumer attempting to unsubscribe"


class SubscriptionOwner(Protocol):
    """The topic's subscriptions, as far as one of them depends on them.

    Attributes:
        rules: The broker's configuration.
        topic_rate: The rate of dispatch that all share.
        turns: Runs the dispatchers of the broker in turn.
    """

    rules: SubscriptionRules
    topic_rate: RateLimiter
    turns: SharedTurns

    def changed(self) -> None:
        """A cursor has changed and is to be saved soon."""

    def left_entries(self) -> None:
        """Entries are no longer needed by a subscription: a ledger may be dropped."""

    def became_empty(self, subscription: Subscription) -> None:
        """The last consumer has left."""

    def keeps(self, subscription: Subscription) -> bool:
        """Tell whether it, or its cursor, is found by who subscribes again."""

    def delete(self, name: str) -> None:
        """Delete a subscription."""


class Subscription:
    """A subscription of a topic (upstream: PersistentSubscription).

    Attributes:
        type: Of its consumers; kept when the last one leaves; None before the first.
        dispatcher: Delivers to its consumers; None before the first.
        awaits_return: A SEEK closed its consumers, who come again; of a subscription that is not
            durable the cursor is kept meanwhile.
        messages_out, bytes_out: What was sent to consumers that are gone.
        total_expired: Entries that expired since the topic was loaded.
        last_expired_at, last_flow_at, advanced_at: When entries expired, a consumer gave permits,
            the mark-delete went on, in ms since 1970; 0 for never.
    """

    def __init__(
        self,
        name: str,
        topic: SubscribedTopic,
        cursor: ManagedCursor,
        owner: SubscriptionOwner,
    ) -> None:
        self.name = name
        self._owner = owner
        self.topic = topic
        self.cursor = cursor
        self.type: SubType.ValueType | None = None
        self.dispatcher: Dispatcher | None = None
        self.awaits_return = False
        self.messages_out = 0
        self.bytes_out = 0
        self.total_expired = 0
        self.last_expired_at = 0
        self.last_flow_at = 0
        self.advanced_at = 0
        self._mark_delete_seen = cursor.mark_delete
        # Not stored: to load the topic counts, too (recorded).
        self._active_at = topic.clock.now()

    def _is_active(self) -> None:
        """Note that a consumer came or went, or that the cursor was reset."""
        self._active_at = self.topic.clock.now()

    @property
    def durable(self) -> bool:
        """True if it outlives its consumers."""
        return self.cursor.durable

    @property
    def internal(self) -> bool:
        """True if its cursor says how far the topic is compacted; see StoredSubscription."""
        return self.name == COMPACTION and self.durable

    @property
    def consumers(self) -> Sequence[Consumer]:
        """Those that are connected."""
        return self.dispatcher.consumers if self.dispatcher is not None else ()

    @property
    def awaited(self) -> bool:
        """True while a SEEK has closed its consumers, and nobody has come since."""
        return self.awaits_return and self._owner.keeps(self)

    # -- consumers ----------------------------------------------------------------------------

    def conflicting(self, meta: pb.KeySharedMeta) -> Consumer | None:
        """Return a consumer that has hashes of the fixed ranges that a newcomer asks for."""
        ring = self.dispatcher.ring if isinstance(self.dispatcher, KeySharedDispatcher) else None
        return ring.conflicting(meta) if isinstance(ring, FixedRanges) else None

    def add_consumer(self, cnx: ClientConnection, options: ConsumerOptions) -> Consumer:
        """Connect a consumer.

        Raises:
            RequestError: Another one has it, or it is of another kind than those that have.
        """
        if self.dispatcher is None or not self.dispatcher.consumers:
            self._change_type(options)
        assert self.dispatcher is not None
        check_type(self.type, options.type)
        check_count(self.topic.policies, self.consumers)
        consumer = Consumer(cnx, options, self, self.topic.name.partition_index)
        self.dispatcher.add(consumer)
        self.awaits_return = False
        self._is_active()
        return consumer

    def _change_type(self, options: ConsumerOptions) -> None:
        """Take the type of the first consumer."""
        if self.type == options.type == Failover:
            return  # A change that is about to be told is told to this one (recorded).
        if self.dispatcher is not None:
            self.dispatcher.close()
        owner = self._owner
        context = SubscriptionContext(
            self.topic, self.cursor, owner.rules, owner.topic_rate, owner.turns
        )
        if options.type == Exclusive:
            dispatcher: Dispatcher = SingleActiveDispatcher(context)
        elif options.type == Failover:
            dispatcher = FailoverDispatcher(context)
        elif options.type == Shared:
            dispatcher = SharedDispatcher(context)
        else:
            dispatcher = KeySharedDispatcher(context, options.key_shared)
        self.type, self.dispatcher = options.type, dispatcher

    def remove_consumer(self, consumer: Consumer) -> None:
        """Disconnect a consumer; what it did not acknowledge is delivered again."""
        if self.dispatcher is not None and consumer in self.dispatcher.consumers:
            self.dispatcher.remove(consumer)
            self._has_left(consumer, self.dispatcher)

    def _has_left(self, consumer: Consumer, dispatcher: Dispatcher) -> None:
        consumer.cnx.outbound.forget_listener(dispatcher.wake)
        # Another consumer of the same connection may have waited for it too.
        dispatcher.wake()
        self._count(consumer)
        self._is_active()
        if not dispatcher.consumers:
            self._owner.became_empty(self)

    def _count(self, gone: Consumer) -> None:
        self.messages_out += gone.messages_out
        self.bytes_out += gone.bytes_out

    def close_consumers(self, new_owner: ServerUrls = NO_URLS) -> None:
        """Disconnect all consumers, and tell their clients, very many of them in steps.

        What they had is not shared out among those that follow.
        """
        dispatcher = self.dispatcher
        if dispatcher is None or not dispatcher.consumers:
            return
        gone = list(dispatcher.consumers)
        dispatcher.remove_all()
        for consumer in gone:
            consumer.cnx.consumers.pop(consumer.consumer_id, None)
            self._count(consumer)
        self._owner.turns.in_steps(self._told(gone, dispatcher, new_owner))
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

    def unused_for(self, seconds: float) -> bool:
        """Tell whether it is durable and nobody consumed it for longer than a time."""
        unused = self.durable and not self.consumers
        return unused and self.topic.clock.now() - self._active_at > seconds

    # -- what consumers ask -------------------------------------------------------------------

    def flow(self, consumer: Consumer, permits: int) -> None:
        """Give a consumer room for more messages."""
        assert self.dispatcher is not None
        consumer.flowed(permits)
        self.last_flow_at = consumer.last_flow_at
        self.dispatcher.flowed(consumer)
        if self.topic.terminated:
            self.tell_end()

    def acknowledge(self, consumer: Consumer, ids: Iterable[pb.MessageIdData]) -> None:
        """Acknowledge entries, or messages of batches, one by one."""
        dispatcher, cursor, rules = self.dispatcher, self.cursor, self._owner.rules
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
            consumer.messages_acked += 1
            dispatcher.acknowledged(consumer, position, newly, done=done)
        self._after_ack(ledger_before)

    def _acknowledge_part(self, position: Position, ack_set: Sequence[int]) -> tuple[int, bool]:
        digest = self.topic.ledger.digest(position)
        if digest is None or self.cursor.is_acknowledged(position):
            return 0, True
        return self.cursor.acknowledge_part(position, digest.message_count, ack_set)

    def acknowledge_cumulatively(self, consumer: Consumer, one: pb.MessageIdData) -> None:
        """Acknowledge everything up to an entry; no effect where consumers have their own."""
        if self.type in INDIVIDUALLY:
            return
        cursor, position = self.cursor, from_wire(one.ledgerId, one.entryId)
        ledger_before = cursor.mark_delete.ledger_id
        consumer.last_acked_at = self.topic.clock.wall_ms()
        if one.ack_set and self._owner.rules.acks_of_batch_indexes:
            if cursor.holds(position):
                cursor.acknowledge_through(self.topic.ledger.preceding(position))
                self._acknowledge_part(position, one.ack_set)
        elif not one.ack_set:
            left = self.topic.compaction.compacted if consumer.options.read_compacted else None
            compacted = left is not None and left.covers(position)
            cursor.acknowledge_through(position, compacted=compacted)
        self._after_ack(ledger_before)

    def _has_changed(self) -> None:
        """Have the cursor saved, note that it went on, and free what it has forgotten."""
        if self.cursor.mark_delete > self._mark_delete_seen:
            self.advanced_at = self.topic.clock.wall_ms()
        self._mark_delete_seen = self.cursor.mark_delete
        self._owner.changed()
        if self.cursor.batches.gone:
            self._free_forgotten()

    def _free_forgotten(self) -> None:
        self._owner.turns.in_steps(self.cursor.batches.freed())

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
        """Deliver again what a consumer gives back; no ids: all that it has.

        Args:
            consumer: Who gives it back.
            ids: The entries.
            epoch: The consumer's from now on; None: none is given.
            more: Other ids of the same command follow; nothing is delivered before them.
        """
        assert self.dispatcher is not None
        if epoch is not None and epoch > consumer.epoch and self.type not in INDIVIDUALLY:
            consumer.epoch = epoch
        # Plain numbers: what no consumer has is passed over.
        positions = [(one.ledgerId, one.entryId) for one in ids] if ids else None
        self.dispatcher.redeliver(consumer, positions, more=more)

    # -- moving the cursor --------------------------------------------------------------------

    def seek(self, first: Position) -> None:
        """Make an entry the next one, and close consumers, who subscribe again.

        Of a Failover subscription only the active one is closed (recorded). The new place is
        saved at once: the client that is told of it must not find an old one after a crash.
        """
        self.awaits_return = True
        self._is_active()  # Also if REST asks for it (recorded).
        dispatcher = self.dispatcher
        if isinstance(dispatcher, FailoverDispatcher):
            active = dispatcher.disconnect_active()
            if active is not None:
                self._has_left(active, dispatcher)
                active.close()
        else:
            self.close_consumers()
        if not self.internal:  # That one succeeds, and goes nowhere (recorded).
            self.cursor.reset(first)
            self.cursor.save()
            self._free_forgotten()
        self._owner.left_entries()

    def skip(self, entries: int) -> None:
        """Skip entries from the mark-delete on; consumers hear nothing of it."""
        before = self.cursor.mark_delete
        self.cursor.skip(entries)
        self._moved(before)

    def skip_through(self, position: Position) -> None:
        """Acknowledge everything up to a position."""
        before = self.cursor.mark_delete
        self.cursor.skip_through(position)
        self._moved(before)

    def _moved(self, before: Position) -> None:
        self._has_changed()
        if self.dispatcher is not None:
            self.dispatcher.cursor_moved(before)
        self._owner.left_entries()
        if self.topic.terminated:
            self.tell_end()

    async def expire_older(self, than_ms: int) -> int:
        """Acknowledge the entries that were published before a moment; return how many.

        Raises:
            MessageStoreError: They cannot be read.
        """
        ledger = self.topic.ledger
        return self.expire_through(ledger.preceding(await ledger.published_at(than_ms)))

    def expire_through(self, position: Position) -> int:
        """Acknowledge everything up to a position as expired; return how many entries."""
        before = self.cursor.backlog
        if position > self.cursor.mark_delete:
            self.skip_through(position)
        expired = before - self.cursor.backlog
        if expired:
            self.total_expired += expired
            self.last_expired_at = self.topic.clock.wall_ms()
        return expired

    # -- what the topic tells -----------------------------------------------------------------

    def entries_added(self) -> None:
        """Deliver what was stored."""
        if self.dispatcher is not None:
            self.dispatcher.entries_added()

    def tell_end(self) -> None:
        """Tell consumers that a terminated topic has nothing left for them."""
        if self.dispatcher is not None and not self.cursor.backlog:
            untold = [one for one in self.consumers if not one.reached_end]
            self.dispatcher.tell(untold, Consumer.tell_end)

    def policies_changed(self) -> None:
        """Follow the policies that are in force now."""
        if self.dispatcher is not None:
            self.dispatcher.policies_changed()

    def check_unsubscribe(self, *, force: bool) -> None:
        """Refuse to delete it under other consumers.

        Raises:
            RequestError: There are others.
        """
        if len(self.consumers) > 1 and not force:
            raise RequestError(pb.MetadataError, NOT_ALONE)

    def delete(self) -> None:
        """Close all consumers, and forget what they acknowledged."""
        self.awaits_return = False
        self.close_consumers()
        self._owner.delete(self.name)

    def forget(self) -> None:
        """Free what its cursor keeps, a little at a time: nobody needs it any more."""
        self.cursor.batches.clear()
        self._free_forgotten()

    def close(self) -> None:
        """End its timers."""
        if self.dispatcher is not None:
            self.dispatcher.close()


def check_type(ours: SubType.ValueType | None, theirs: SubType.ValueType) -> None:
    """Refuse a consumer of another type than those that are connected.

    Raises:
        RequestError: It is.
    """
    if ours != theirs:
        raise RequestError(
            pb.ConsumerBusy,
            "Subscription is of different type. Active subscription type of "
            f"'{SubType.Name(ours or Exclusive)}' is different than the connecting consumer's type "
            f"'{SubType.Name(theirs)}'.",
        )


def check_count(policies: EffectivePolicies, consumers: Sequence[Consumer]) -> None:
    """Refuse a consumer of a subscription that has as many as it may have.

    Raises:
        RequestError: It has.
    """
    if 0 < policies.max_consumers_per_subscription <= len(consumers):
        raise RequestError(pb.ConsumerBusy, "Subscription reached max consumers limit")
