"""Bulk changes of names: equal to single changes, and every step is short."""

from collections.abc import Generator, Iterator
from random import Random
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.watches.names import merging as many_names
from broker.watches.names.merging import alike, changes_between, differences, merged
from broker.watches.names.nodes import LEAVES
from broker.watches.names.sorted_names import SortedNames
from proto.topic_hash import in_java_order, topics_hash

T = TypeVar("T")
MANY = settings(max_examples=60, deadline=None)
_LETTERS = st.sampled_from(["a", "b", "\ud7ff", "\ue000", "\uffff", "\U0001f600"])
NAMES = st.sets(st.text(_LETTERS, min_size=1, max_size=4).map(str.encode), max_size=300)


@pytest.fixture(autouse=True, scope="module", params=["as it is", "small steps"])
def step_sizes(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let changes of a few names take many steps, too."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "small steps":
            for name in ("FILLED_NAMES", "_ADDED_A_STEP", "_KEPT_LEAVES_A_STEP", "_NAMES_A_STEP"):
                patch.setattr(many_names, name, 3)
        yield


def done(steps: Generator[None, None, T]) -> T:
    try:
        while True:
            next(steps)
    except StopIteration as stopped:
        result: T = stopped.value
        return result


def names_of(names: set[bytes]) -> SortedNames:
    return SortedNames.from_sorted(in_java_order(names))


def check(names: SortedNames, expected: set[bytes]) -> None:
    assert list(names.names()) == in_java_order(expected)
    assert names.hash == topics_hash(name.decode() for name in expected)
    assert (len(names), names.name_bytes) == (len(expected), sum(map(len, expected)))


@MANY
@given(NAMES, NAMES, NAMES)
def test_a_merged_set_equals_the_set_after_all_its_changes(first, added, removed) -> None:
    # Present names are added, too, and absent names removed
    added = added - removed
    before = names_of(first)
    after = done(merged(before, in_java_order(added), in_java_order(removed)))
    check(after, (first | added) - removed)
    check(before, first)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 4_000), st.integers(0, 3_000), st.floats(0, 1))
def test_a_large_merged_set_is_correct_and_can_still_be_changed(
    seed, count, changes, share_added
) -> None:
    random = Random(seed)
    everything = [f"{number:05d}".encode() for number in range(5_000)]
    first = set(random.sample(everything, count))
    chosen = random.sample(everything, changes)
    added = {name for name in chosen if random.random() < share_added}
    before, removed = names_of(first), set(chosen) - added
    after = done(merged(before, sorted(added), sorted(removed)))
    expected = (first | added) - removed
    check(after, expected)
    for name in random.sample(everything, 20):
        after = after.without_name(name) if name in expected else after.with_name(name)
        expected ^= {name}
    check(after, expected)


def test_a_merge_keeps_the_unchanged_leaves() -> None:
    everything = [f"{number:05d}".encode() for number in range(20_000)]
    before = SortedNames.from_sorted(everything)
    after = done(merged(before, [b"00001x", b"00002x"], [b"00003"]))
    kept = {id(leaf) for leaf in before.nodes()} & {id(leaf) for leaf in after.nodes()}
    assert len(kept) == before._root[LEAVES] - 1  # type: ignore[index]


def test_a_merge_keeps_the_name_objects_of_the_set() -> None:
    own = [b"a" * 20, b"b" * 20]
    before = SortedNames.from_sorted(own)
    after = done(merged(before, [bytes(bytearray(b"a" * 20)), b"c"], []))
    assert next(after.names()) is own[0]


@MANY
@given(NAMES, NAMES)
def test_the_changes_between_two_versions_are_complete(first: set[bytes], last: set[bytes]) -> None:
    # Versions with a common past
    before = names_of(first)
    after = done(merged(before, in_java_order(last - first), in_java_order(first - last)))
    changes, all_of_them = done(changes_between(before, after, 10**9))
    assert all_of_them
    assert list(changes.added) == in_java_order(last - first)
    assert list(changes.removed) == in_java_order(first - last)


@MANY
@given(NAMES, NAMES, st.integers(0, 200))
def test_changes_in_bounded_parts_lead_to_the_newest_version(first, last, most_bytes) -> None:
    told, newest = names_of(first), names_of(last)
    parts = 0
    while True:
        changes, all_of_them = done(changes_between(told, newest, most_bytes))
        names = [*changes.added, *changes.removed]
        # No part is too large or empty
        assert len(names) <= 1 or sum(len(name) + 4 for name in names) <= most_bytes
        assert names or all_of_them
        told = done(merged(told, changes.added, changes.removed))
        parts += 1
        if all_of_them:
            break
    check(told, last)
    assert parts <= len(first ^ last) + 1


@MANY
@given(NAMES, NAMES)
def test_two_lists_differ_in_their_added_and_removed_names(
    before: set[bytes], after: set[bytes]
) -> None:
    found = done(differences(iter(in_java_order(before)), iter(in_java_order(after))))
    assert list(found.added) == in_java_order(after - before)
    assert list(found.removed) == in_java_order(before - after)


@MANY
@given(NAMES, NAMES)
def test_sets_are_alike_exactly_when_their_names_are_equal(
    one: set[bytes], other: set[bytes]
) -> None:
    assert done(alike(names_of(one), names_of(other))) is (one == other)
    assert done(alike(names_of(one), names_of(one)))


def test_sets_of_equal_length_and_crc_are_compared_by_name(monkeypatch) -> None:
    one, other = names_of({b"a", b"b"}), names_of({b"a", b"c"})
    monkeypatch.setattr(SortedNames, "fingerprint", (2, 0, 3))
    assert not done(alike(one, other))


def test_sets_of_different_sizes_are_not_compared() -> None:
    everything = [f"{number:06d}".encode() for number in range(50_000)]
    half, whole = SortedNames.from_sorted(everything[::2]), SortedNames.from_sorted(everything)
    assert list(alike(half, whole)) == []


@pytest.mark.parametrize("what", ["merged", "many at one place", "compared", "counted"])
def test_long_operations_are_split_into_short_steps(what: str) -> None:
    everything = [f"{number:06d}".encode() for number in range(50_000)]
    half = SortedNames.from_sorted(everything[::2])
    whole = SortedNames.from_sorted(everything)
    work: Generator[None, None, object] = {
        "merged": merged(half, everything[1::2], []),
        "many at one place": merged(SortedNames.from_sorted([b"a"]), everything, []),
        "compared": alike(whole, SortedNames.from_sorted(everything)),
        "counted": changes_between(half, whole, 10**9),
    }[what]
    steps = sum(1 for _ in work)
    assert steps >= 20
