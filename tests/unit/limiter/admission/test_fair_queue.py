"""Queue order: the least served first, by bytes, between tenants, namespaces and items."""

import pytest

from limiter.admission.fair_queue import SLACK_ENTRIES, FairQueue, LeastFirst, TurnQueue, tenant_of


def test_the_item_with_the_least_value_comes_first_and_the_older_of_equals() -> None:
    items: LeastFirst[str] = LeastFirst()
    for item, value in (("b", 2), ("a", 1), ("c", 1)):
        items.put(item, value)
    order = []
    while (first := items.first()) is not None:
        order.append(first)
        items.discard(first)
    assert order == ["a", "c", "b"]


def test_an_item_put_twice_has_only_its_new_value() -> None:
    items: LeastFirst[str] = LeastFirst()
    items.put("a", 1)
    items.put("b", 2)
    items.put("a", 3)
    assert items.first() == "b"
    assert (len(items), items.value_of("a")) == (2, 3)


def test_discarding_an_item_twice_is_harmless() -> None:
    items: LeastFirst[str] = LeastFirst()
    items.put("a", 1)
    items.discard("a")
    items.discard("a")
    assert items.first() is None
    assert "a" not in items


def test_outdated_heap_entries_are_removed() -> None:
    items: LeastFirst[int] = LeastFirst()
    for value in range(10_000):
        items.put(value % 3, value)
    assert len(items._heap) <= 2 * 3 + SLACK_ENTRIES + 1
    assert items.first() == 1


def served(queue: TurnQueue[str], sizes: dict[str, int], times: int) -> str:
    """Serve the next account repeatedly; return the order."""
    order = ""
    for _ in range(times):
        child = queue.first() or ""
        queue.served(child, sizes[child])
        order += child
    return order


def test_an_item_served_ten_times_as_many_bytes_is_served_a_tenth_as_often() -> None:
    queue: TurnQueue[str] = TurnQueue()
    queue.add("l")
    queue.add("s")
    order = served(queue, {"l": 10, "s": 1}, 22)
    assert order == "l" + "s" * 10 + "l" + "s" * 10


def test_a_new_item_takes_turns_immediately_without_catching_up() -> None:
    queue: TurnQueue[str] = TurnQueue()
    queue.add("a")
    served(queue, {"a": 100}, 5)
    queue.add("b")
    assert served(queue, {"a": 100, "b": 100}, 4) == "abab"


def test_a_new_item_comes_after_the_next_item_even_if_a_less_served_item_was_discarded() -> None:
    queue: TurnQueue[str] = TurnQueue()
    queue.add("a")
    queue.add("b")
    queue.served("a", 100)
    queue.discard("b")
    queue.add("c")
    assert queue.first() == "a"


def test_an_item_discarded_and_added_again_is_still_charged() -> None:
    queue: TurnQueue[str] = TurnQueue()
    queue.add("a")
    queue.add("b")
    queue.served("a", 10)
    queue.discard("a")
    queue.add("a")
    assert served(queue, {"a": 10, "b": 1}, 6) == "bbbbbb"


def test_the_charge_of_a_discarded_item_is_forgotten_once_caught_up() -> None:
    queue: TurnQueue[str] = TurnQueue()
    for number in range(1_000):
        queue.add(f"visitor {number}")
        queue.add("stays")
        queue.served(f"visitor {number}", 10)
        queue.discard(f"visitor {number}")
        queue.served("stays", 10)
        queue.discard("stays")
    assert len(queue._ahead) < 5


def test_a_stream_of_new_items_does_not_starve_a_waiting_item() -> None:
    queue: TurnQueue[str] = TurnQueue()
    queue.add("waits")
    queue.add("other")
    queue.served("waits", 50)
    queue.add("newcomer 0")
    times = 0
    while (child := queue.first()) != "waits" and times < 1_000:
        assert child is not None
        queue.served(child, 1)
        times += 1
        if child != "other":
            queue.discard(child)
            queue.add(f"newcomer {times}")
    # The account was served 50 more than the three waiting with it
    assert 50 <= times <= 200


@pytest.mark.parametrize(
    ("one", "other"), [("t/x", "u/x"), ("t/x", "t/y")], ids=["tenants", "namespaces"]
)
def test_many_items_of_a_tenant_or_namespace_do_not_outweigh_a_single_item_of_another(
    one: str, other: str
) -> None:
    turns: FairQueue[int] = FairQueue()
    for number in range(100):
        turns.add(one, number)
    turns.add(other, 1_000)
    order = []
    for _ in range(10):
        item = turns.first()
        assert item is not None
        turns.served(other if item == 1_000 else one, item, 5)
        order.append(item == 1_000)
    assert sum(order) == 5


def test_items_of_a_namespace_are_served_in_turn() -> None:
    turns: FairQueue[str] = FairQueue()
    for item in "abc":
        turns.add("t/x", item)
    order = ""
    for _ in range(6):
        item = turns.first() or ""
        turns.served("t/x", item, 5)
        order += item
    assert order == "abcabc"


def test_levels_without_waiting_items_are_forgotten() -> None:
    turns: FairQueue[str] = FairQueue()
    turns.add("t/x", "a")
    turns.add("t/y", "b")
    turns.discard("t/x", "a")
    turns.discard("t/y", "b")
    assert turns.first() is None
    assert (len(turns), turns._items, turns._namespaces) == (0, {}, {})


@pytest.mark.parametrize(
    ("namespace", "tenant"), [("t/x", "t"), ("t/cluster/x", "t"), ("t", "t"), ("", "")]
)
def test_the_tenant_is_the_part_of_a_namespace_before_the_first_slash(
    namespace: str, tenant: str
) -> None:
    assert tenant_of(namespace) == tenant
