"""The dispatcher of Key_Shared subscriptions, which delivers by key."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.messages.metadata import key_of
from broker.messages.subscriptions.context import Waits
from broker.messages.subscriptions.dispatchers.shared import SharedDispatcher
from broker.messages.subscriptions.key_shared.draining import DrainingHashes
from server.connection.request_errors import RequestError

if TYPE_CHECKING:
    from broker.messages.entry import Entry
    from broker.messages.subscriptions.consumer import AnySubscription, Consumer
    from broker.policies.rate_limiter import RateLimiter

STICKY = pb.STICKY
HASHES_A_LOOK = 1_000
"""The largest number of hashes (of waiting messages, and draining) checked to find the reason why a
consumer waits."""
_HASH_ZERO = 1 << 16
"""Replaces the hash 0 in mode STICKY, because 0 means no hash."""


class KeySharedDispatcher(SharedDispatcher):
    """A dispatcher that delivers each key's messages to one consumer at a time, in order.

    A message waits while the consumer has no permits, while an earlier message of the key waits,
    and while another consumer still has unacknowledged messages of the key.

    Source: upstream PersistentStickyKeyDispatcherMultipleConsumers.

    Attributes:
        mode: The Key_Shared mode: AUTO_SPLIT or STICKY.
        allows_disorder: True if messages do not wait after their key has moved to another consumer
            (allowOutOfOrderDelivery).
        ring: The assignment of key hashes to consumers.
        draining: The pending messages of each key hash.
    """

    def __init__(
        self, subscription: AnySubscription, topic_rate: RateLimiter, meta: pb.KeySharedMeta
    ) -> None:
        self.mode = meta.keySharedMode
        self.allows_disorder = meta.allowOutOfOrderDelivery
        self.ring = subscription.topic.rules.nobodys_hashes(self.mode)
        self.draining: DrainingHashes[Consumer] = DrainingHashes()
        super().__init__(subscription, topic_rate)

    @property
    def drains(self) -> bool:
        """True if messages of a key that changes its consumer wait for acknowledgements.

        They wait until the previous consumer's messages of the key are acknowledged.
        """
        return self.mode == pb.AUTO_SPLIT and not self.allows_disorder

    # -- delivering ---------------------------------------------------------------------------

    def _may_go(self, sticky_hash: int) -> bool:
        consumer = self.ring.select(sticky_hash % _HASH_ZERO)
        return consumer is not None and self._goes_to(consumer, sticky_hash, consumer.permits)

    def _goes_to(self, consumer: Consumer, sticky_hash: int, room: int) -> bool:
        if room <= 0 or consumer.blocked or not consumer.cnx.outbound.writable:
            return False
        return self.allows_disorder or not self.draining.blocks(consumer, sticky_hash)

    def _waits_for_entries(self, consumer: Consumer) -> Waits | None:
        waiting = islice(self.replay.hashes(), HASHES_A_LOOK)
        owners = {one: self.ring.select(one % _HASH_ZERO) for one in waiting}
        own = [one for one, owner in owners.items() if owner is consumer]
        if self._waits_for_draining(consumer):
            return Waits.DRAINING
        if own or not self.replay:
            return None if own else super()._waits_for_entries(consumer)
        if not self._cursor.at_end and len(self.replay) >= self._most_ahead:
            return Waits.LOOK_AHEAD
        are_free = owners and all(owner is None for owner in owners.values())
        return self._waits_for_new(Waits.FREE_KEYS if are_free else Waits.OTHER_KEYS)

    def _waits_for_draining(self, consumer: Consumer) -> bool:
        """Return True if a waiting message has one of the consumer's hashes that still drain."""
        return not self.allows_disorder and any(
            self.draining.source(one) is not consumer
            and self.ring.select(one % _HASH_ZERO) is consumer
            and self.replay.contains_hash(one)
            for one in islice(self.draining, HASHES_A_LOOK)
        )

    def _share_out(self, entries: list[Entry]) -> None:
        """Deliver each entry to the consumer of its key, or queue it until that is possible.

        From one read a consumer gets at most as many entries as it has permits; a batch counts as
        one entry, as on a real broker.
        """
        room: dict[Consumer, int] = {}
        for entry in entries:
            position = (entry.ledger_id, entry.entry_id)
            waited = position in self.replay
            sticky_hash = self.replay.hash_of(position) if waited else 0
            if not sticky_hash:
                key = key_of(entry.data)
                sticky_hash = self.ring.hash_of(key) or _HASH_ZERO
            consumer = self.ring.select(sticky_hash % _HASH_ZERO)
            behind = not waited and self.replay.contains_hash(sticky_hash)
            if consumer is not None and consumer not in room:
                room[consumer] = consumer.permits if consumer.waits is None else 0
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
        for consumer in room:
            consumer.sent_together()

    def _let_go(self, consumer: Consumer, sticky_hash: int) -> None:
        if self.draining.settled(consumer, sticky_hash):
            self.wake()

    # -- consumers ----------------------------------------------------------------------------

    def add(self, consumer: Consumer) -> None:
        """Add a consumer of the same Key_Shared mode, which takes over some of the keys.

        Raises:
            RequestError: The mode differs, or another consumer owns requested hash ranges.
        """
        if self.consumers:
            self._check(consumer.options.key_shared)
        self.draining.moved(consumer.take_hashes(self.ring))
        super().add(consumer)

    def _check(self, meta: pb.KeySharedMeta) -> None:
        check_mode(self.mode, meta.keySharedMode)
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
        """Remove a consumer and release its keys; its unacknowledged entries are redelivered."""
        self.ring.remove(consumer)
        super().remove(consumer)

    def _has_gone(self, consumer: Consumer) -> None:
        self.draining.lost(consumer)
        super()._has_gone(consumer)

    def remove_all(self) -> None:
        """Remove all consumers, and release their keys, in one step."""
        self.ring = self._topic.rules.nobodys_hashes(self.mode)
        super().remove_all()

    def _forget_all(self) -> None:
        self._topic.turns.in_steps(self.draining.emptied())
        self.draining = DrainingHashes()
        super()._forget_all()


def check_mode(ours: pb.KeySharedMode.ValueType, theirs: pb.KeySharedMode.ValueType) -> None:
    """Refuse a consumer whose Key_Shared mode differs from that of the subscription.

    Raises:
        RequestError: The modes differ.
    """
    if ours != theirs:
        name = pb.KeySharedMode.Name
        raise _other_type(
            f"Active subscription key_shared mode of '{name(ours)}' is different than the "
            f"connecting consumer's key_shared mode '{name(theirs)}'."
        )


def _other_type(text: str) -> RequestError:
    return RequestError(pb.ConsumerBusy, f"Subscription is of different type. {text}")
