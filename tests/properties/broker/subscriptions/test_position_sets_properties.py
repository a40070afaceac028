"""Random changes of position sets: always equal to a plain set."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from broker.messages.position import Position
from broker.messages.subscriptions.delayed import DelayedMessages
from broker.messages.subscriptions.position_set import PositionSet
from broker.messages.subscriptions.replay import ReplayQueue

# Few ledgers and entries around the borders of bytes, so that changes meet.
LEDGERS = st.integers(1, 4)
ENTRIES = st.integers(0, 40)
POSITIONS = st.builds(Position, LEDGERS, ENTRIES)
BEHIND = st.builds(Position, LEDGERS, st.integers(-1, 40))


class PositionSetMachine(RuleBasedStateMachine):
    """A set of positions beside a plain set."""

    def __init__(self) -> None:
        super().__init__()
        self.positions = PositionSet()
        self.model: set[Position] = set()

    @rule(position=POSITIONS)
    def add(self, position: Position) -> None:
        assert self.positions.add(position) == (position not in self.model)
        self.model.add(position)

    @rule(ledger=LEDGERS, ends=st.tuples(ENTRIES, ENTRIES).map(sorted))
    def add_range(self, ledger: int, ends: list[int]) -> None:
        new = {Position(ledger, entry) for entry in range(ends[0], ends[1] + 1)}
        assert sum(map(self.positions.add, sorted(new))) == len(new - self.model)
        self.model |= new

    @rule(position=POSITIONS)
    def discard(self, position: Position) -> None:
        assert self.positions.discard(position) == (position in self.model)
        self.model.discard(position)

    @rule(position=BEHIND)
    def discard_through(self, position: Position) -> None:
        self.positions.discard_through(position)
        self.model = {one for one in self.model if one > position}

    @rule()
    def store(self) -> None:
        self.positions = PositionSet.of_bitmaps(self.positions.as_bitmaps())

    @rule()
    def clear(self) -> None:
        self.positions.clear()
        self.model.clear()

    @rule(position=POSITIONS)
    def look(self, position: Position) -> None:
        assert (position in self.positions) == (position in self.model)
        clear = position.entry_id
        while Position(position.ledger_id, clear) in self.model:
            clear += 1
        assert self.positions.first_clear(*position) == clear

    @rule(most=st.integers(0, 5))
    def look_at_some_ranges(self, most: int) -> None:
        assert self.positions.ranges(most) == self.positions.ranges()[:most]

    @invariant()
    def holds_the_same(self) -> None:
        assert list(self.positions) == sorted(self.model)
        assert len(self.positions) == len(self.model)
        rows = self.positions.ranges()
        assert [
            Position(ledger, entry)
            for ledger, first, last in rows
            for entry in range(first, last + 1)
        ] == sorted(self.model)
        for (ledger, _, last), (next_ledger, first, _) in pairwise(rows):
            assert ledger < next_ledger or last + 1 < first


PositionSetMachine.TestCase.settings = settings(max_examples=60, deadline=None)
TestPositionSet = PositionSetMachine.TestCase


@given(st.lists(POSITIONS, max_size=60), BEHIND)
def test_acknowledged_positions_survive_the_store(added: list[Position], behind: Position) -> None:
    acknowledged = PositionSet()
    for position in added:
        acknowledged.add(position)
    acknowledged.discard_through(behind)
    stored = PositionSet.of_bitmaps(acknowledged.as_bitmaps())
    assert stored.ranges() == acknowledged.ranges()
    assert stored.count == len({one for one in added if one > behind})


class ReplayMachine(RuleBasedStateMachine):
    """A queue of positions beside a plain mapping to hashes."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = ReplayQueue()
        self.model: dict[Position, int] = {}

    @rule(position=POSITIONS, sticky_hash=st.integers(0, 3))
    def add(self, position: Position, sticky_hash: int) -> None:
        self.queue.add(position, sticky_hash)
        self.model[position] = self.model.get(position, 0) or sticky_hash

    @rule(positions=st.lists(POSITIONS, max_size=9))
    def add_all(self, positions: list[Position]) -> None:
        self.queue.add_all(positions)
        for position in positions:
            self.model.setdefault(position, 0)

    @rule(position=POSITIONS)
    def remove(self, position: Position) -> None:
        assert self.queue.remove(position) == (position in self.model)
        self.model.pop(position, None)

    @rule(position=BEHIND)
    def discard_through(self, position: Position) -> None:
        self.queue.discard_through(position)
        self.model = {one: of for one, of in self.model.items() if one > position}

    @rule(most=st.integers(0, 9))
    def look(self, most: int) -> None:
        assert self.queue.first(most) == sorted(self.model)[:most]

    @rule(most=st.integers(1, 9), free=st.sets(st.integers(1, 3)), at_once=st.sampled_from([9, 20]))
    def search(self, most: int, free: set[int], at_once: int) -> None:
        self.queue.changed()
        found: list[Position] = []
        while self.queue.searching and not found:
            found = self.queue.search(most, free.__contains__, at_once)
        assert bool(found) == any(of in {0} | free for of in self.model.values())
        for of in {self.model[one] for one in found} - {0}:
            in_order = sorted(one for one in self.model if self.model[one] == of)
            found_of = [one for one in found if self.model[one] == of]
            assert found_of == in_order[: len(found_of)]

    @rule(position=BEHIND, changed=POSITIONS, sticky_hash=st.integers(0, 3))
    def discard_in_steps(self, position: Position, changed: Position, sticky_hash: int) -> None:
        steps = self.queue.discarded(position)
        next(steps, None)
        # Later positions may change meanwhile.
        if changed > position:
            self.add(changed, sticky_hash)
        for _ in steps:
            pass
        self.model = {one: of for one, of in self.model.items() if one > position}

    @invariant()
    def holds_the_same(self) -> None:
        assert len(self.queue) == len(self.model)
        assert all(self.queue.hash_of(one) == of for one, of in self.model.items())
        for sticky_hash in range(1, 4):
            there = sticky_hash in self.model.values()
            assert self.queue.contains_hash(sticky_hash) == there


ReplayMachine.TestCase.settings = settings(max_examples=60, deadline=None)
TestReplay = ReplayMachine.TestCase


class DelayedMachine(RuleBasedStateMachine):
    """Delayed messages beside a plain mapping to their due moments."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_000_000
        self.delayed = DelayedMessages(tick_ms=10)
        self.model: dict[Position, int] = {}

    @rule(position=POSITIONS)
    def add(self, position: Position) -> None:
        # The same entry is always due at the same moment.
        due = 1_000_000 + 7 * position.entry_id + position.ledger_id
        kept = self.delayed.add(position, due, self.now)
        assert kept == (due > self.now + 10)
        if kept:
            self.model[position] = due

    @rule(ms=st.integers(0, 50), most=st.integers(1, 9))
    def take(self, ms: int, most: int) -> None:
        self.now += ms
        due = sorted((at, one) for one, at in self.model.items() if at <= self.now + 10)
        taken = self.delayed.take_due(self.now, most)
        assert taken == sorted(one for _, one in due[:most])
        for one in taken:
            del self.model[one]
        if len(due) > most:
            assert self.delayed.next_due(self.now) == 0

    @rule(position=POSITIONS)
    def discard(self, position: Position) -> None:
        assert self.delayed.discard(position) == (position in self.model)
        self.model.pop(position, None)

    @rule(position=BEHIND)
    def discard_through(self, position: Position) -> None:
        self.delayed.discard_through(position)
        self.model = {one: at for one, at in self.model.items() if one > position}

    @invariant()
    def the_timer_fires_within_a_tick(self) -> None:
        assert len(self.delayed) == len(self.model)
        wait = self.delayed.next_due(self.now)
        if not self.model:
            assert wait is None
        else:
            assert wait is not None
            first = min(self.model.values())
            assert 0 <= wait <= max(0, first - self.now) + 10


DelayedMachine.TestCase.settings = settings(max_examples=60, deadline=None)
TestDelayed = DelayedMachine.TestCase
