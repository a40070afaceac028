"""A persistent set of names in Java's order."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Generator

import pytest

from broker.watches.names.merging import alike, changes_between, merged
from broker.watches.names.nodes import LEAVES, LEFT, MAX_LEAF_NAMES, NAMES, RIGHT, Node, children_of
from broker.watches.names.sorted_names import (
    EMPTY_NAMES,
    LEAVES_A_LOOK,
    NameChanges,
    SortedNames,
    SortedNamesBuilder,
)
from proto.topic_hash import EMPTY_HASH, in_java_order, topics_hash
from tests.support.stepwise import finished

T = "persistent://tenant/ns/"
ADDED_LEAVES = 21
"""The most leaves added by a step of a merge."""


def names_of(*texts: str) -> SortedNames:
    return SortedNames.from_sorted(in_java_order(f"{T}{text}".encode() for text in texts))


def numbered(count: int) -> list[bytes]:
    return [f"{T}{number:06d}".encode() for number in range(count)]


def nodes(node: Node | None) -> list[Node]:
    if node is None:
        return []
    return [node, *nodes(node[LEFT]), *nodes(node[RIGHT])] if children_of(node) else [node]


def depth(node: Node | None) -> int:
    if node is None or not children_of(node):
        return 0
    return 1 + max(depth(node[LEFT]), depth(node[RIGHT]))


# -- content --------------------------------------------------------------------------------------


def test_the_empty_set_has_no_names_and_takes_no_memory() -> None:
    empty = EMPTY_NAMES
    assert (len(empty), empty.hash, empty.name_bytes, empty.own_bytes) == (0, EMPTY_HASH, 0, 0)
    assert (list(empty.names()), list(empty.leaves()), b"a" in empty) == ([], [], False)
    assert empty.without_name(b"a") is empty
    assert empty.own_objects([b"a", b"b"]) == [b"a", b"b"]
    assert SortedNamesBuilder().finished() is empty
    assert SortedNames.from_sorted([]) is empty


def test_the_hash_of_a_set_is_the_hash_that_pulsar_computes() -> None:
    assert names_of("topic1", "topic2").hash == "21ed405c"
    assert names_of("topic1").with_name(f"{T}topic2".encode()).hash == "21ed405c"


def test_names_sort_as_java_sorts_strings() -> None:
    names = names_of("\ue000")
    names = names.with_name(f"{T}\U0001f600".encode()).with_name(f"{T}\ud7ff".encode())
    assert [name.decode().removeprefix(T) for name in names.names()] == [
        "\ud7ff",
        "\U0001f600",
        "\ue000",
    ]
    assert names.hash == topics_hash([f"{T}\ue000", f"{T}\ud7ff", f"{T}\U0001f600"])


@pytest.mark.parametrize("how", ["at once", "one by one"])
def test_names_beyond_ascii_are_found_and_removed_in_a_large_set(how: str) -> None:
    # More than one leaf of both kinds
    texts = [chr(start + n) for n in range(300) for start in (0xE000, 0x1F000)]
    names = names_of(*(texts if how == "at once" else ()))
    if how == "one by one":
        for text in texts:
            names = names.with_name(f"{T}{text}".encode())
    assert [name.decode() for name in names.names()] == [
        f"{T}{chr(start + n)}" for start in (0x1F000, 0xE000) for n in range(300)
    ]
    for text in texts:
        name = f"{T}{text}".encode()
        assert name in names
        names = names.without_name(name)
        assert name not in names
    assert names is EMPTY_NAMES


def test_a_no_op_change_returns_the_same_version() -> None:
    names = names_of("a", "b")
    assert names.with_name(f"{T}a".encode()) is names
    assert names.without_name(f"{T}c".encode()) is names


def test_a_name_may_be_the_prefix_of_another_name() -> None:
    names = names_of("a", "a1", "a12")
    assert list(names.without_name(f"{T}a1".encode()).names()) == [
        f"{T}a".encode(),
        f"{T}a12".encode(),
    ]


# -- versions -------------------------------------------------------------------------------------


def test_a_change_shares_all_leaves_except_the_changed_leaf() -> None:
    before = SortedNames.from_sorted(numbered(100_000))
    tracemalloc.start()
    after = before.with_name(f"{T}050000x".encode())
    added_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    shared = {id(leaf) for leaf in before.leaves()} & {id(leaf) for leaf in after.leaves()}
    assert len(shared) == before._root[LEAVES] - 1  # type: ignore[index]
    assert added_bytes < 10_000


def test_the_changes_between_versions_are_exactly_the_changed_names() -> None:
    before = SortedNames.from_sorted(numbered(10_000))
    after = before.without_name(numbered(10_000)[77]).with_name(f"{T}x".encode())
    changes, _ = finished(changes_between(before, after, 1 << 30))
    assert changes == NameChanges([f"{T}x".encode()], [numbered(10_000)[77]])


def test_only_versions_that_share_all_nodes_have_the_same_identity() -> None:
    names = names_of("a", "b")
    other = names_of("a", "b")
    there_and_back = names.with_name(f"{T}c".encode()).without_name(f"{T}c".encode())
    assert names.identity == names.with_name(f"{T}a".encode()).identity
    assert names.identity not in (other.identity, there_and_back.identity)
    assert finished(alike(names, other))
    assert finished(alike(names, there_and_back))
    assert names.fingerprint == other.fingerprint


@pytest.mark.parametrize("texts", [["a"], ["a", "c"], ["a", "b", "c"], []])
def test_sets_with_different_names_are_not_equal(texts: list[str]) -> None:
    assert not finished(alike(names_of("a", "b"), names_of(*texts)))


# -- balance --------------------------------------------------------------------------------------


@pytest.mark.parametrize("backwards", [False, True], ids=["rising", "falling"])
def test_adding_names_in_order_keeps_the_tree_balanced(backwards: bool) -> None:
    names, all_names = EMPTY_NAMES, numbered(5_000)
    for name in reversed(all_names) if backwards else all_names:
        names = names.with_name(name)
    leaves = names._root[LEAVES]  # type: ignore[index]
    assert leaves <= 5_000 / (MAX_LEAF_NAMES // 2) + 1
    assert depth(names._root) <= 2 * leaves.bit_length()


@pytest.mark.parametrize("backwards", [False, True], ids=["rising", "falling"])
def test_removing_names_in_order_keeps_the_tree_balanced(backwards: bool) -> None:
    names, all_names = SortedNames.from_sorted(numbered(5_000)), numbered(5_000)
    going = all_names[::-1] if backwards else all_names
    for name in going[:4_800]:
        names = names.without_name(name)
    leaves = names._root[LEAVES]  # type: ignore[index]
    assert depth(names._root) <= 2 * leaves.bit_length()
    assert list(names.names()) == sorted(going[4_800:])


def test_leaves_that_become_small_are_merged() -> None:
    all_names = numbered(9_600)
    names = SortedNames.from_sorted(all_names)
    for number, name in enumerate(all_names):
        if number % 16:
            names = names.without_name(name)
    # 600 are left
    assert names._root[LEAVES] <= 600 / 16  # type: ignore[index]


# -- memory ---------------------------------------------------------------------------------------


def made(how: str, all_names: list[bytes]) -> SortedNames:
    names = EMPTY_NAMES
    if how == "at once":
        return SortedNames.from_sorted(all_names)
    if how == "one by one":
        for name in (*all_names[::2], *all_names[1::2]):
            names = names.with_name(name)
        return names
    # New leaves only, so that no leaf is shared with a full set.
    names = SortedNames.from_sorted(all_names)
    for name in all_names[::3]:
        names = names.without_name(name)
    return names


@pytest.mark.parametrize("how", ["at once", "one by one", "thinned"])
def test_the_estimated_size_is_close_to_the_memory_of_a_set(how: str) -> None:
    # Memory kept for reuse by Python and by the cache of CRCs is not the set's
    all_names = numbered(8_000)
    made(how, all_names)
    gc.collect()
    tracemalloc.start()
    names = made(how, all_names)
    gc.collect()
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert names.own_bytes == pytest.approx(used, rel=0.25)


@pytest.mark.parametrize("how", ["at once", "one by one", "thinned"])
def test_the_garbage_collector_soon_untracks_all_nodes_of_a_set(how: str) -> None:
    names = made(how, numbered(1_000))
    # A look for each level of the tree, at most
    for _ in range(depth(names._root) + 2):
        gc.collect()
    assert not any(map(gc.is_tracked, nodes(names._root)))


def built(names: list[bytes]) -> SortedNames:
    return SortedNames.from_sorted(names)


def put_together(names: list[bytes]) -> SortedNames:
    def result() -> Generator[None, None, None]:
        found.append((yield from merged(EMPTY_NAMES, names, [])))

    found: list[SortedNames] = []
    list(result())
    return found[0]


@pytest.mark.parametrize("make", [built, put_together])
def test_few_leaves_of_a_new_large_set_are_tracked_by_the_garbage_collector(make) -> None:
    # Otherwise the collector would visit all leaves in one run.
    before = gc.get_threshold()
    gc.set_threshold(1_000_000, *before[1:])
    try:
        unseen = sum(gc.is_tracked(leaf[NAMES]) for leaf in make(numbered(40_000)).nodes())
    finally:
        gc.set_threshold(*before)
    assert unseen <= LEAVES_A_LOOK + ADDED_LEAVES


def test_a_set_holds_its_name_objects_without_copies() -> None:
    given = numbered(1_000)
    names = SortedNames.from_sorted(given)
    assert all(one is other for one, other in zip(names.names(), given, strict=True))


# -- arguments of other types ---------------------------------------------------------------------


@pytest.mark.parametrize("step", [1, 3, 40, 500])
def test_a_set_returns_its_own_objects_for_equal_names(step: int) -> None:
    names = SortedNames.from_sorted(numbered(1_000))
    own = names.own_objects(numbered(1_000)[::step])
    expected = list(names.names())[::step]
    assert all(one is other for one, other in zip(own, expected, strict=True))


def test_a_set_returns_absent_names_unchanged() -> None:
    # Next to existing names, before them, between leaves and behind them
    names = SortedNames.from_sorted(numbered(1_000))
    asked = in_java_order([*numbered(1_000)[90:110], *(name + b"x" for name in numbered(1_002))])
    asked = in_java_order([*asked, b"a", b"z"])
    own = names.own_objects(asked)
    ids = {name: id(name) for name in names.names()}
    assert own == asked
    assert all(id(one) == ids.get(one, id(wanted)) for one, wanted in zip(own, asked, strict=True))
