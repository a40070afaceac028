"""The watched sets of a namespace: equal sets are held once, and changed once."""

import tracemalloc

import pytest

from broker.watches.names.sorted_names import SortedNames
from broker.watches.sets.watched_sets import SET_BYTES, WatchedSet, WatchedSets


def numbered(count: int) -> list[bytes]:
    return [f"persistent://t/n/{number:06d}".encode() for number in range(count)]


def sets_of(count: int = 100) -> WatchedSets:
    return WatchedSets(SortedNames.from_sorted(numbered(count)))


def add(sets: WatchedSets, pattern: str, names: SortedNames) -> WatchedSet:
    """Add a set as the set's maker does."""
    like = sets.like(names)
    try:
        while True:
            next(like)
    except StopIteration as done:
        return sets.add(pattern, done.value)


def some(sets: WatchedSets, step: int = 2) -> SortedNames:
    """Return names of a set as the namespace's objects, in a separate tree."""
    return SortedNames.from_sorted(list(sets.everything.names())[::step])


def test_a_set_with_all_names_shares_the_set_of_the_namespace() -> None:
    sets = sets_of()
    watched = add(sets, "t/n/.*", some(sets, 1))
    assert watched.names is sets.everything


def test_equal_sets_of_two_patterns_are_held_once() -> None:
    sets = sets_of()
    first = add(sets, "one", some(sets))
    held = sets.held_bytes
    second = add(sets, "other", some(sets))
    assert second.names is first.names
    assert (sets.held_bytes, len(sets)) == (held + SET_BYTES, 2)


def test_different_sets_are_charged_separately_without_shared_names() -> None:
    sets = sets_of(1_000)
    add(sets, "one", some(sets, 2))
    held = sets.held_bytes
    other = add(sets, "other", some(sets, 3))
    # Without the shared names
    assert sets.held_bytes - held == SET_BYTES + other.names.own_bytes
    assert other.names.own_bytes < other.names.name_bytes


def test_equal_sets_stay_shared_through_common_changes() -> None:
    sets = sets_of()
    one, other = add(sets, "one", some(sets)), add(sets, "other", some(sets))
    different = sets.change(b"persistent://t/n/x", [one, other], added=True)
    assert different == [one, other]
    assert one.names is other.names
    sets.change(b"persistent://t/n/y", [one], added=True)
    assert (len(one.names), len(other.names)) == (52, 51)


def test_adding_a_present_or_removing_an_absent_name_is_a_no_op() -> None:
    sets = sets_of()
    watched = add(sets, "one", some(sets))
    before = watched.names
    there = sets.change(numbered(1)[0], [watched], added=True)
    absent = sets.change(b"persistent://t/n/x", [watched], added=False)
    assert (there, absent) == ([], [])
    assert watched.names is before


def test_a_new_name_is_added_to_the_namespace_without_any_watched_set() -> None:
    sets = sets_of()
    sets.change(b"persistent://t/n/x", [], added=True)
    assert b"persistent://t/n/x" in sets.everything


def test_no_memory_is_charged_without_watched_sets() -> None:
    sets = sets_of()
    watched = add(sets, "one", some(sets))
    assert sets.held_bytes > 0
    sets.discard(watched)
    assert (sets.held_bytes, len(sets), sets.get("one")) == (0, 0, None)


def test_the_charged_memory_is_close_to_the_used_memory() -> None:
    tracemalloc.start()
    sets = sets_of(10_000)
    for step in (2, 3, 5):
        add(sets, str(step), some(sets, step))
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sets.held_bytes == pytest.approx(used, rel=0.25)


def test_the_charged_memory_follows_every_change_of_the_sets() -> None:
    sets = sets_of()
    one, other = add(sets, "one", some(sets)), add(sets, "other", some(sets, 3))
    # Both sets change, one of them separately, and one receives a different version
    sets.change(b"persistent://t/n/x", [one, other], added=True)
    sets.change(b"persistent://t/n/y", [one], added=True)
    sets.change(numbered(1)[0], [one, other], added=False)
    sets.replace(other, SortedNames.from_sorted(numbered(3)))
    sets.replace(other, one.names)
    # As if the sets had been equal from the beginning
    fresh = WatchedSets(sets.everything)
    for watched in (one, other):
        fresh.add(watched.pattern, watched.names)
    assert sets.held_bytes == fresh.held_bytes
    sets.discard(one)
    sets.discard(other)
    assert sets._versions.own_bytes == sets.everything.own_bytes


def test_a_change_of_a_forgotten_set_is_not_charged() -> None:
    # The set is forgotten during a change of many sets
    sets = sets_of()
    gone, other = add(sets, "gone", some(sets)), add(sets, "other", some(sets, 3))
    sets.discard(gone)
    sets.change(b"persistent://t/n/x", [gone, other], added=True)
    fresh = WatchedSets(sets.everything)
    fresh.add("other", other.names)
    assert sets.held_bytes == fresh.held_bytes
