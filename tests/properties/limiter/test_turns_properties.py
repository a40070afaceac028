"""FairQueue is fair in bytes, for any arrivals, departures and sizes."""

from hypothesis import given, settings
from hypothesis import strategies as st

from limiter.admission.fair_queue import FairQueue, LeastFirst, TurnQueue

LARGEST = 50
SIZES = st.integers(1, LARGEST)
NAMESPACES = ("t/x", "t/y", "u/x")
EXAMPLES = settings(max_examples=60, deadline=None, database=None)


@EXAMPLES
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(-1, 9)), max_size=200))
def test_least_first_returns_the_least_item(changes: list[tuple[int, int]]) -> None:
    items: LeastFirst[int] = LeastFirst()
    values: dict[int, tuple[int, int]] = {}
    # A value below 0 discards
    for number, (item, value) in enumerate(changes):
        if value < 0:
            items.discard(item)
            values.pop(item, None)
        else:
            items.put(item, value)
            values[item] = (value, number)
        assert items.first() == min(values, key=values.__getitem__, default=None)
        assert len(items) == len(values)


@EXAMPLES
@given(st.dictionaries(st.integers(), st.lists(SIZES, min_size=1), min_size=2, max_size=6))
def test_always_waiting_children_receive_equal_bytes(sizes) -> None:
    # Always waiting children, each with its own sizes
    queue: TurnQueue[int] = TurnQueue()
    received = dict.fromkeys(sizes, 0)
    for child in sizes:
        queue.add(child)
    for turn in range(100):
        first = queue.first()
        assert first is not None
        size = sizes[first][turn % len(sizes[first])]
        queue.served(first, size)
        received[first] += size
        assert max(received.values()) - min(received.values()) <= LARGEST


@EXAMPLES
@given(
    st.lists(st.tuples(st.sampled_from(NAMESPACES), SIZES), min_size=1, max_size=30),
    st.sampled_from(NAMESPACES),
)
def test_always_waiting_tenants_receive_equal_bytes_in_any_namespaces(items, other) -> None:
    turns: FairQueue[int] = FairQueue()
    everybody = [*items, ("u/x", LARGEST), ("t/x", 1), (other, 7)]
    received = {"t": 0, "u": 0}
    for number, (namespace, _) in enumerate(everybody):
        turns.add(namespace, number)
    for _ in range(60):
        first = turns.first()
        assert first is not None
        namespace, size = everybody[first]
        turns.served(namespace, first, size)
        received[namespace[0]] += size
        assert abs(received["t"] - received["u"]) <= LARGEST


@EXAMPLES
@given(st.lists(st.tuples(SIZES, st.booleans()), min_size=1, max_size=100))
def test_a_new_waiter_is_served_after_present_and_before_later_waiters(services) -> None:
    queue: TurnQueue[str] = TurnQueue()
    queue.add("a")
    queue.add("b")
    for size, first in services:
        queue.served("a" if first else "b", size)
    turn = queue.first()
    queue.add("early")
    queue.add("late")
    assert queue.first() == turn
    queue.discard("a")
    queue.discard("b")
    assert queue.first() == "early"


@EXAMPLES
@given(st.lists(st.tuples(st.integers(0, 7), SIZES), max_size=150))
def test_remaining_waiters_are_served_after_departures_and_nothing_is_retained(changes) -> None:
    turns: FairQueue[int] = FairQueue()
    waiting: dict[int, str] = {}
    # Waiting children leave, others arrive
    for item, size in changes:
        if item in waiting:
            turns.served(waiting[item], item, size)
            turns.discard(waiting.pop(item), item)
        else:
            waiting[item] = NAMESPACES[size % 3]
            turns.add(waiting[item], item)
        first = turns.first()
        assert (first in waiting) if waiting else (first is None)
        assert len(turns) == len(waiting)
    for item, namespace in waiting.items():
        turns.discard(namespace, item)
    assert (turns.first(), turns._items, turns._namespaces) == (None, {}, {})
