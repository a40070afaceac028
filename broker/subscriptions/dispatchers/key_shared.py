"""Dispatch by key: Key_Shared."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.subscriptions.dispatchers.shared import SharedDispatcher
from broker.subscriptions.key_shared.draining import DrainingHashes
from broker.subscriptions.key_shared.fixed_ranges import FixedRanges
from broker.subscriptions.key_shared.sticky_key import key_of
from broker.subscriptions.waits import Waits
from server.connection.request_errors import RequestError

if TYPE_CHECKING:
    from broker.messages.entry import Entry
    from broker.subscriptions.consumer import Consumer
    from broker.subscriptions.context import SubscriptionContext

STICKY = pb.STICKY
HASHES_A_LOOK = 1_000
"""Hashes of waiting messages checked for a consumer's reason for waiting."""
_HASH_ZERO = 1 << 16
"""Replaces the hash 0 of STICKY, because 0 means no hash."""


class KeySharedDispatcher(SharedDispatcher):
    """Delivers the messages of a key to one consumer at a time, in order.

    A message waits while the consumer has no permits, while an earlier message of the key waits,
    and while another consumer still has unacknowledged messages of the key.

    Source: upstream PersistentStickyKeyDispatcherMultipleConsumers.

    Attributes:
        mode: AUTO_SPLIT or STICKY.
        allows_disorder: Messages of a moved key do not wait (allowOutOfOrderDelivery).
        ring: The consumer of each hash.
        draining: The pending messages of each hash.
    """

    def __init__(self, context: SubscriptionContext, meta: pb.KeySharedMeta | None) -> None:
        meta = meta or pb.KeySharedMeta()
        self.mode = meta.keySharedMode
        self.allows_disorder = meta.allowOutOfOrderDelivery
        self.ring = context.rules.nobodys_hashes(self.mode)
        self.draining: DrainingHashes[Consumer] = DrainingHashes()
        super().__init__(context)

    @property
    def drains(self) -> bool:
        """True if messages of a moved key wait for earlier messages."""
        return self.mode == pb.AUTO_SPLIT and not self.allows_disorder

    # -- delivering ---------------------------------------------------------------------------

    def _waiting_entries(self, most: int) -> list[Entry] | None:
        """Return the first waiting entries with a ready consumer; None if empty."""
        return self._those_left(self.replay.first(most, self._may_go))

    def _may_go(self, sticky_hash: int) -> bool:
        consumer = self.ring.select(sticky_hash % _HASH_ZERO)
        return consumer is not None and self._goes_to(consumer, sticky_hash, consumer.permits)

    def _goes_to(self, consumer: Consumer, sticky_hash: int, room: int) -> bool:
        if room <= 0 or consumer.blocked or not consumer.cnx.outbound.writable:
            return False
        return self.allows_disorder or not self.draining.blocks(consumer, sticky_hash)

    @property
    def _most_ahead(self) -> int:
        """Most entries read past waiting keys."""
        rules = self._context.rules.dispatch
        return min(rules.look_ahead, rules.look_ahead_per_consumer * len(self.consumers))

    def _waits_for_entries(self, consumer: Consumer) -> Waits | None:
        waiting = islice(self.replay.hashes(), HASHES_A_LOOK)
        own = [one for one in waiting if self.ring.select(one % _HASH_ZERO) is consumer]
        if any(self.draining.source(one) not in (None, consumer) for one in own):
            return Waits.DRAINING
        if own or not self.replay:
            return None if own else super()._waits_for_entries(consumer)
        if len(self.replay) >= self._most_ahead:
            return Waits.LOOK_AHEAD
        return Waits.OTHER_KEYS if self._cursor.at_end else None

    def _new_entries(self, most: int) -> list[Entry] | None:
        return None if len(self.replay) >= self._most_ahead else super()._new_entries(most)

    def _share_out(self, entries: list[Entry]) -> None:
        """Deliver each entry to the consumer of the key, or queue it.

        From one read a consumer gets as many entries as permits, batches or not, as from a real
        broker.
        """
        room: dict[Consumer, int] = {}
        for entry in entries:
            position = (entry.ledger_id, entry.entry_id)
            sticky_hash = self.replay.hash_of(position) if self.replay else 0
            waited = sticky_hash != 0
            if not waited:
                key = key_of(entry.data)
                sticky_hash = self.ring.hash_of(key) or _HASH_ZERO
            consumer = self.ring.select(sticky_hash % _HASH_ZERO)
            behind = not waited and self.replay.contains_hash(sticky_hash)
            if consumer is not None and consumer not in room:
                room[consumer] = consumer.permits if consumer.takes_messages else 0
            if (
                consumer is None
                or behind
                or not self._goes_to(consumer, sticky_hash, room[consumer])
            ):
                self.replay.add(position, sticky_hash)
                continue
            room[consumer] -= 1
            self._send(consumer, entry, sticky_hash)
            self.draining.delivered(consumer, sticky_hash)

    def _let_go(self, consumer: Consumer, sticky_hash: int) -> None:
        if self.draining.settled(consumer, sticky_hash):
            self.wake()

    # -- consumers ----------------------------------------------------------------------------

    def add(self, consumer: Consumer) -> None:
        """Add a consumer of the same mode, which takes over a part of the keys.

        Raises:
            RequestError: The mode differs, or the ranges are taken.
        """
        meta = consumer.options.key_shared or pb.KeySharedMeta()
        self._check(meta)
        if isinstance(self.ring, FixedRanges):
            ranges = [(one.start, one.end) for one in meta.hashRanges]
            self.draining.moved(self.ring.add(consumer, ranges))
        else:
            self.draining.moved(self.ring.add(consumer))
        super().add(consumer)

    def _check(self, meta: pb.KeySharedMeta) -> None:
        if not self.consumers:
            return
        if meta.keySharedMode != self.mode:
            ours, theirs = (pb.KeySharedMode.Name(one) for one in (self.mode, meta.keySharedMode))
            raise _other_type(
                f"Active subscription key_shared mode of '{ours}' is different than the connecting "
                f"consumer's key_shared mode '{theirs}'."
            )
        if meta.allowOutOfOrderDelivery != self.allows_disorder:
            ours, theirs = (
                ("allows", "does not allow")
                if self.allows_disorder
                else ("does not allow", "allows")
            )
            raise _other_type(
                f"Active subscription {ours} out of order delivery while the connecting consumer "
                f"{theirs} it."
            )

    def remove(self, consumer: Consumer) -> None:
        """Remove a consumer; the keys move, and unacknowledged entries are redelivered first."""
        self.ring.remove(consumer)
        super().remove(consumer)

    def _has_gone(self, consumer: Consumer) -> None:
        self.draining.lost(consumer)
        super()._has_gone(consumer)

    def remove_all(self) -> None:
        """Remove all consumers and their hashes in one step."""
        self.ring = self._context.rules.nobodys_hashes(self.mode)
        super().remove_all()

    def _forget_all(self) -> None:
        self._context.turns.in_steps(self.draining.emptied())
        self.draining = DrainingHashes()
        super()._forget_all()


def _other_type(text: str) -> RequestError:
    return RequestError(pb.ConsumerBusy, f"Subscription is of different type. {text}")
