"""A subscription's history, played step by step against its model."""

from __future__ import annotations

from dataclasses import replace

from broker.messages.position import Position
from broker.messages.subscriptions.dispatchers.holding import HASH_BITS
from broker.messages.subscriptions.dispatchers.key_shared import KeySharedDispatcher
from broker.messages.subscriptions.dispatchers.shared import SharedDispatcher
from broker.messages.subscriptions.dispatchers.single_active import FailoverDispatcher
from broker.messages.subscriptions.subscription import Subscription
from broker.messages.subscriptions.subscriptions import Subscriptions
from broker.policies.effective import DEFAULTS
from tests.support.clocks.settle import settle
from tests.support.messages.consumers import KeptTopic, consume, ids, kept_topic
from tests.support.messages.model import ALONE, Member, Model, Published, SubType, words_without

KEYS = "abcd"
LEDGER_ENTRIES = 5
TICK_MS = DEFAULTS.delayed_tick_ms
LARGEST_BATCH = 7
ENOUGH = 1_000


class History:
    """A subscription with its consumers and its model.

    ``do`` plays a step, runs all tasks and compares; ``finish`` acknowledges until the backlog is
    empty.
    """

    def __init__(self, topic: KeptTopic, kind: SubType.SubType.ValueType) -> None:
        self.topic = topic
        self.kind = kind
        self.model = Model()
        self.subscriptions: Subscriptions = topic.subscriptions()
        self.subscription: Subscription = self.subscriptions.create("s")
        self._names = 0
        self._turn_ended = True

    @classmethod
    async def of(
        cls, kind: SubType.SubType.ValueType, max_unacked: int = 0, max_unacked_of_all: int = 0
    ) -> History:
        """Return the history of a new subscription."""
        policies = replace(
            DEFAULTS,
            max_unacked_per_consumer=max_unacked,
            max_unacked_per_subscription=max_unacked_of_all,
        )
        return cls(await kept_topic(policies, LEDGER_ENTRIES), kind)

    # -- steps --------------------------------------------------------------------------------

    async def do(self, what: str, first: int, second: int, *, turn_ends: bool = True) -> None:
        """Do a step and check the consequences; an impossible step is a no-op.

        Unless the turn ends, the next step happens in the same turn of the event loop.
        """
        could_take = {one: one.consumer.waits is None for one in self.model.members}
        if what in _OF_A_MEMBER:
            if not self.model.members:
                return
            member = self.model.members[first % len(self.model.members)]
            could_take.pop(member)
            getattr(self, f"_{what}")(member, second)
        else:
            getattr(self, f"_{what}")(first, second)
        if not self._turn_ended or what not in _MAKES_NO_ROOM:
            could_take = {}
        self._take_all(could_take)
        self._turn_ended = turn_ends
        if turn_ends:
            await settle()
            self._take_all(could_take)
            self.check()

    def _take_all(self, could_take: dict[Member, bool]) -> None:
        for member in self.model.members:
            before = len(member.had)
            self._take(member)
            if could_take.get(member) is False:
                assert len(member.had) == before, "sent to a consumer without room"
            consumer = member.consumer
            assert consumer.permits + consumer.held_permits == member.permits
            assert consumer.blocked or not consumer.held_permits

    def _publish(self, batch: int, key: int, deliver_at: int = 0) -> None:
        size = batch if batch > 3 else 0
        name = KEYS[key % len(KEYS)]
        (position,) = self.topic.publish(1, batch=size, key=name, deliver_at=deliver_at)
        self.model.publish(position, Published(max(1, size), bool(size), name, deliver_at))
        self.subscription.entries_added()

    def _delay(self, seconds: int, key: int) -> None:
        self._publish(0, key, self.topic.clock.wall_ms() + seconds * 1000)

    def _join(self, _: int, permits: int) -> None:
        if self.kind == SubType.Exclusive and self.model.members:
            return
        self._names += 1
        consumer, cnx = consume(self.subscription, self.kind, permits, name=f"c{self._names}")
        self.model.members.append(Member(consumer, cnx, permits))

    def _change(self, kind: int, permits: int) -> None:
        if not self.model.members:
            self.kind = (*ALONE, SubType.Shared, SubType.Key_Shared)[kind % 4]
            self._join(0, permits)

    def _time(self, seconds: int, _: int) -> None:
        self.topic.clock.advance(1.0 + seconds // 3)
        self.model.saved = True

    def _skip(self, count: int, _: int) -> None:
        left = sorted(self.model.left)[:count]
        self.subscription.skip(count)
        if left:
            self.model.acknowledge_through(left[-1])

    def _expire(self, at: int, _: int) -> None:
        through = self._any(at)
        if through is not None:
            self.subscription.expire_through(through)
            self.model.acknowledge_through(through)

    def _seek(self, at: int, _: int) -> None:
        first = self._any(at)
        if first is None:
            return
        self.subscription.seek(first)
        for member in list(self.model.members):
            if any(one.HasField("close_consumer") for one in member.cnx.commands):
                self.model.leave(member)
        self.model.begin_with(self._there(first))
        self.model.saved = True

    def _there(self, first: Position) -> dict[Position, set[int]]:
        """Return the entries from a position on that retention has kept."""
        ledger, published = self.topic.ledger, self.model.published
        return {
            at: set(range(published[at].size))
            for at in sorted(published)
            if at >= first and ledger.holds(at)
        }

    def _unload(self, _: int, __: int) -> None:
        self.subscriptions.save()
        self.subscriptions.close()
        self._begin_again()

    def _crash(self, _: int, __: int) -> None:
        """Crash; acknowledgements of the last second may be undone."""
        saved, before = self.model.saved, self.model.left
        self.subscriptions.close()
        self._begin_again()
        cursor, after = self.subscription.cursor, {}
        for at, places in self._there(
            min(self.model.published, default=cursor.mark_delete)
        ).items():
            if not cursor.is_acknowledged(at):
                words = cursor.batches.words(at)
                after[at] = places if words is None else {n for n in places if words[0] >> n & 1}
        assert all(before[at] <= after.get(at, set()) for at in before)
        assert not saved or before == after
        self.model.begin_with(after)

    def _begin_again(self) -> None:
        self.model.members.clear()
        self.model.begin_with(self.model.left)
        self.subscriptions = self.topic.subscriptions()
        (self.subscription,) = self.subscriptions

    # -- steps of a member --------------------------------------------------------------------

    def _flow(self, member: Member, number: int) -> None:
        permits = number * 3 if number > 2 else 1
        member.permits += permits
        self.subscription.flow(member.consumer, permits)

    def _leave(self, member: Member, _: int) -> None:
        member.cnx.consumers.clear()
        self.subscription.remove_consumer(member.consumer)
        self.model.leave(member)

    def _block(self, member: Member, _: int) -> None:
        if member.cnx.outbound.writable:
            member.cnx.block()

    def _unblock(self, member: Member, _: int) -> None:
        if not member.cnx.outbound.writable:
            member.cnx.unblock()

    def _redeliver(self, member: Member, number: int) -> None:
        had = member.had[-1 - number : len(member.had) - number // 2]
        given = list(dict.fromkeys(had)) if number % 3 else []
        self.subscription.redeliver(member.consumer, ids(*given), None)
        member.requested_again = True
        self.model.redeliver(member, given or None)
        member.last = None if self._is_active(member) else member.last

    def _ack(self, member: Member, number: int) -> None:
        if member.had:
            position = member.had[number % len(member.had)]
            self.subscription.acknowledge(member.consumer, ids(position))
            self.model.acknowledge(position)

    def _stray(self, member: Member, number: int) -> None:
        """Acknowledge any entry, whichever consumer had it."""
        position = self._any(number)
        if position is not None:
            self.subscription.acknowledge(member.consumer, ids(position))
            self.model.acknowledge(position)

    def _part(self, member: Member, number: int) -> None:
        batches = [at for at in member.had if self.model.published[at].is_batch]
        if batches:
            position, gone = batches[number % len(batches)], (number, number + 1)
            asked = ids(position, ack_set=words_without(gone))
            self.subscription.acknowledge(member.consumer, asked)
            self.model.acknowledge(position, gone)

    def _cumulative(self, member: Member, number: int) -> None:
        """Acknowledge everything up to an entry or a place in its batch."""
        if not member.had:
            return
        position = member.had[-1 - number % min(4, len(member.had))]
        entry, gone = self.model.published[position], range(number // 2)
        in_part = entry.is_batch and number % 2 == 1 and len(gone) > 0
        (asked,) = ids(position, ack_set=words_without(gone) if in_part else ())
        self.subscription.acknowledge_cumulatively(member.consumer, asked)
        if self.kind in ALONE and not in_part:
            self.model.acknowledge_through(position)
        elif self.kind in ALONE and position in self.model.left:
            self.model.acknowledge_before(position)
            self.model.acknowledge(position, gone)

    def _any(self, number: int) -> Position | None:
        there = sorted(self._there(min(self.model.published))) if self.model.published else []
        return there[number % len(there)] if there else None

    def _is_active(self, member: Member) -> bool:
        return getattr(self.subscription.dispatcher, "active", None) is member.consumer

    # -- checks -------------------------------------------------------------------------------

    def check(self) -> None:
        """Check all figures, and that no deliverable entry waits."""
        assert self.subscription.cursor.backlog == len(self.model.left)
        if self.kind in ALONE:
            self._check_single()
        else:
            self._check_many()

    def _take(self, member: Member) -> None:
        new = []
        for command in member.cnx.commands:
            if command.HasField("active_consumer_change"):
                if command.active_consumer_change.is_active:
                    member.last = None
            elif command.HasField("message"):
                assert command.message.consumer_id == member.consumer.consumer_id
                if self.kind in ALONE:
                    self.model.delivered_in_order(member, command.message)
                else:
                    self.model.delivered_to_one_of_many(member, command.message)
                    new.append(member.had[-1])
        member.cnx.commands.clear()
        if self.kind == SubType.Key_Shared:
            for position in new:
                self._check_key(member, position)

    def _check_key(self, member: Member, position: Position) -> None:
        """Check that earlier entries of a key are with the same consumer."""
        if not self.model.published[position].due_ms:
            for before in self.model.before_of_key(position):
                assert self.model.holder.get(before) is member, f"{position} overtook"

    def _check_single(self) -> None:
        dispatcher = self.subscription.dispatcher
        if isinstance(dispatcher, FailoverDispatcher) and dispatcher._change.armed:
            return
        for member in self.model.members:
            assert member.consumer.unacked == 0
            if self._is_active(member) and member.consumer.waits is None:
                assert self.model.next_after(member.last) is None, "something waits in vain"

    def _check_many(self) -> None:
        model, dispatcher = self.model, self.subscription.dispatcher
        if not model.members:
            return
        assert isinstance(dispatcher, SharedDispatcher)
        for member in model.members:
            held = {at: len(model.left[at]) for at in model.held_by(member)}
            pending = member.consumer.pending.items()
            assert {at: number >> HASH_BITS for at, number in pending} == held
            assert member.consumer.unacked == sum(held.values())
        assert dispatcher.unacked == sum(one.consumer.unacked for one in model.members)
        assert dict(dispatcher._redeliveries.items()) == model.redeliveries
        self._check_limits(dispatcher)
        waiting = [at for at in sorted(model.left) if at not in model.holder and self._is_due(at)]
        if isinstance(dispatcher, KeySharedDispatcher):
            for position in waiting:
                assert not self._could_go(dispatcher, position), f"{position} waits in vain"
        elif not dispatcher.blocked and any(one.consumer.waits is None for one in model.members):
            assert not waiting, "something waits in vain"

    def _check_limits(self, dispatcher: SharedDispatcher) -> None:
        policies = self.topic.policies
        for member in self.model.members:
            most, has = policies.max_unacked_per_consumer, member.consumer.unacked
            if not member.requested_again:  # Each redelivery request ends a block (recorded).
                if most and all(not one.is_batch for one in self.model.published.values()):
                    assert has <= most
                assert member.consumer.blocked or not most or has < most
            assert not member.consumer.blocked or has > most // 2
        most = policies.max_unacked_per_subscription
        assert dispatcher.blocked or not most or dispatcher.unacked < most
        assert not dispatcher.blocked or dispatcher.unacked >= max(1, most // 2)

    def _could_go(self, dispatcher: KeySharedDispatcher, position: Position) -> bool:
        """Return whether a Key_Shared entry waits without an obstacle."""
        model, key = self.model, self.model.published[position].key
        if dispatcher.blocked or any(
            at not in model.holder for at in model.before_of_key(position)
        ):
            return False
        owner = dispatcher.ring.select(dispatcher.ring.hash_of(key.encode()))
        holders = {one for at, one in model.holder.items() if model.published[at].key == key}
        return (
            owner is not None
            and owner.waits is None
            and all(one.consumer is owner for one in holders)
        )

    def _is_due(self, position: Position) -> bool:
        due_ms = self.model.published[position].due_ms
        return not due_ms or due_ms + TICK_MS <= self.topic.clock.wall_ms()

    # -- the end ------------------------------------------------------------------------------

    async def finish(self) -> None:
        """Receive and acknowledge until the backlog is empty, without a restart."""
        model = self.model
        if not model.members or getattr(self.subscription.dispatcher, "active", model) is None:
            await self.do("join", 0, 0)
        for number in range(len(model.members)):
            await self.do("unblock", number, 0)
            await self.do("flow", number, ENOUGH)
        await self.do("time", 30, 0)
        while model.left:
            before = len(model.left)
            for member in list(model.members):
                for position in dict.fromkeys(member.had):
                    if position in model.left:
                        self.subscription.acknowledge(member.consumer, ids(position))
                        model.acknowledge(position)
            await settle()
            self._take_all({})
            self.check()
            assert len(model.left) < before, "what is left does not come"
        self._check_nothing_is_kept()

    def _check_nothing_is_kept(self) -> None:
        dispatcher = self.subscription.dispatcher
        if isinstance(dispatcher, SharedDispatcher):
            assert dispatcher.unacked == 0
            assert not dispatcher.blocked
        for member in self.model.members:
            assert member.consumer.unacked == 0
            assert not member.consumer.blocked


_OF_A_MEMBER = (
    "flow",
    "leave",
    "block",
    "unblock",
    "redeliver",
    "ack",
    "stray",
    "part",
    "cumulative",
)
_MAKES_NO_ROOM = ("publish", "delay", "join", "flow", "block", "unblock", "redeliver")
STEPS = (
    *("publish", "flow", "ack") * 3,
    *("join", "redeliver", "stray", "part", "cumulative", "leave", "delay", "time") * 2,
    *("block", "unblock", "skip", "expire", "seek"),
    *("change", "unload", "crash"),
)
"""Steps of a history; the most important are the most frequent."""
