"""Random comings and goings of Key_Shared's consumers: every change is told exactly."""

from dataclasses import dataclass
from itertools import pairwise

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from broker.messages.subscriptions.key_shared import hash_ring
from broker.messages.subscriptions.key_shared.draining import DrainingHashes
from broker.messages.subscriptions.key_shared.hash_ring import ConsistentHashRing
from broker.messages.subscriptions.key_shared.ranges import FixedRanges, MovedHashes
from server.connection.request_errors import RequestError
from tests.support.stepwise import finished

EDGES = (1, 65_535)
RANGE = st.tuples(st.integers(0, 30), st.integers(0, 30))


@dataclass(eq=False, frozen=True)
class Consumer:
    name: str


def as_told(model: list[Consumer | None], moved: list[MovedHashes[Consumer]]) -> None:
    """Apply the changes to the table, checking each range's previous owner."""
    for first, last, source, target in moved:
        for sticky_hash in range(first, last + 1):
            assert model[sticky_hash] is source
            model[sticky_hash] = target


class RingMachine(RuleBasedStateMachine):
    """A ring beside a table of all hashes that follows the ring's reported changes."""

    def __init__(self) -> None:
        super().__init__()
        # Few points, so that an example is quick; different names then share no point.
        self.ring: ConsistentHashRing[Consumer] = ConsistentHashRing(points_per_consumer=4)
        self.consumers: list[Consumer] = []
        self.model: list[Consumer | None] = [None] * (hash_ring.HASHES + 1)

    @rule(name=st.sampled_from("abc"))
    def join(self, name: str) -> None:
        consumer = Consumer(name)
        # Within a change a later point may cut a range taken by an earlier point.
        moved = self.ring.add(consumer)
        self.consumers.append(consumer)
        taken = set()
        for first, last, source, target in moved:
            assert target is consumer
            for sticky_hash in range(first, last + 1):
                assert self.model[sticky_hash] is source
                assert sticky_hash not in taken
                taken.add(sticky_hash)
        for sticky_hash in taken:
            self.model[sticky_hash] = consumer

    @precondition(lambda self: self.consumers)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        consumer = self.consumers.pop(data.draw(st.integers(0, len(self.consumers) - 1)))
        had = self.ring.ranges(consumer)
        self.ring.remove(consumer)
        for first, last in had:
            for sticky_hash in range(first, last + 1):
                self.model[sticky_hash] = self.ring.select(sticky_hash)

    @invariant()
    def the_table_is_the_ring(self) -> None:
        rows = sorted(
            (first, last, consumer.name)
            for consumer in self.consumers
            for first, last in self.ring.ranges(consumer)
        )
        if not self.consumers:
            assert rows == []
            assert self.ring.select(1) is None
            assert set(self.model) == {None}
            return
        assert (rows[0][0], rows[-1][1]) == EDGES
        assert all(a[1] + 1 == b[0] for a, b in pairwise(rows))
        for consumer in self.consumers:
            for first, last in self.ring.ranges(consumer):
                assert {self.model[one] for one in range(first, last + 1)} == {consumer}
                assert self.ring.select(first) is self.ring.select(last) is consumer


RingMachine.TestCase.settings = settings(max_examples=30, stateful_step_count=15, deadline=None)
TestRing = RingMachine.TestCase


class FixedMachine(RuleBasedStateMachine):
    """Fixed ranges beside a table of hashes."""

    def __init__(self) -> None:
        super().__init__()
        self.fixed: FixedRanges[Consumer] = FixedRanges()
        self.consumers: list[Consumer] = []
        self.model: list[Consumer | None] = [None] * 40

    @rule(ranges=st.lists(RANGE, max_size=3))
    def join(self, ranges: list[tuple[int, int]]) -> None:
        consumer = Consumer("a")
        wanted = {one for first, last in ranges for one in range(first, last + 1)}
        fits = (
            bool(ranges)
            and all(first <= last for first, last in ranges)
            and all(self.model[one] is None for one in wanted)
        )
        try:
            moved = self.fixed.add(consumer, ranges)
        except RequestError:
            assert not fits
            return
        assert fits
        as_told(self.model, moved)
        assert {one for one, owner in enumerate(self.model) if owner is consumer} == wanted
        self.consumers.append(consumer)

    @precondition(lambda self: self.consumers)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        consumer = self.consumers.pop(data.draw(st.integers(0, len(self.consumers) - 1)))
        as_told(self.model, self.fixed.remove(consumer))
        assert consumer not in self.model

    @invariant()
    def selects_as_the_table(self) -> None:
        assert [self.fixed.select(one) for one in range(40)] == self.model


FixedMachine.TestCase.settings = settings(max_examples=50, deadline=None)
TestFixed = FixedMachine.TestCase


class DrainingMachine(RuleBasedStateMachine):
    """A dispatcher of three consumers and ten hashes that change owners at random."""

    def __init__(self) -> None:
        super().__init__()
        self.draining: DrainingHashes[Consumer] = DrainingHashes()
        self.consumers = [Consumer("a"), Consumer("b"), Consumer("c")]
        self.owner = [self.consumers[0]] * 10
        self.held: list[tuple[Consumer, int]] = []

    @rule(first=st.integers(0, 9), count=st.integers(1, 10), to=st.integers(0, 2))
    def move(self, first: int, count: int, to: int) -> None:
        moved = [
            MovedHashes(one, one, self.owner[one], self.consumers[to])
            for one in range(first, min(10, first + count))
            if self.owner[one] is not self.consumers[to]
        ]
        self.draining.moved(moved)
        for one, _, _, target in moved:
            assert target is not None
            self.owner[one] = target

    @rule(sticky_hash=st.integers(0, 9))
    def deliver(self, sticky_hash: int) -> None:
        owner = self.owner[sticky_hash]
        others = {one for one, of in self.held if of == sticky_hash} - {owner}
        assert self.draining.blocks(owner, sticky_hash) == bool(others)
        if not others:
            self.draining.delivered(owner, sticky_hash)
            self.held.append((owner, sticky_hash))

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def settle(self, data: st.DataObject) -> None:
        gone = self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
        if self.draining.settled(*gone):
            assert gone not in self.held

    @rule(index=st.integers(0, 2))
    def lose(self, index: int) -> None:
        gone = self.consumers[index]
        # All held entries leave first.
        for one in [one for one in self.held if one[0] is gone]:
            self.draining.settled(*one)
            self.held.remove(one)
        self.draining.lost(gone)
        assert self.draining.cleared_total(gone) == 0

    @invariant()
    def statistics_fit(self) -> None:
        drained = 0
        for consumer in self.consumers:
            for sticky_hash, unacked, _ in finished(self.draining.of(consumer)):
                drained += 1
                assert unacked == self.held.count((consumer, sticky_hash))
        assert len(self.draining) == drained


DrainingMachine.TestCase.settings = settings(max_examples=80, deadline=None)
TestDraining = DrainingMachine.TestCase
