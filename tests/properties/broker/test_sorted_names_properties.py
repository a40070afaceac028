"""Random changes of a name set: always equal to the sorted list."""

from __future__ import annotations

import math
from collections.abc import Iterator
from random import Random

import google_crc32c
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.watches.names import nodes as name_nodes
from broker.watches.names import sorted_names
from broker.watches.names.merging import alike, changes_between
from broker.watches.names.nodes import (
    COUNT,
    CRC,
    JOINED_BYTES,
    LEAVES,
    LEFT,
    NAMES,
    RIGHT,
    SPLIT,
    ChangedNodes,
    Node,
    children_of,
    leaf_for,
)
from broker.watches.names.sorted_names import EMPTY_NAMES, SortedNames, SortedNamesBuilder
from proto.topic_hash import combine_crc, in_java_order, java_order, shift_crc, topics_hash
from tests.support.stepwise import finished

MANY = settings(max_examples=50, deadline=None)
# Few different names, so that many are added twice and removed; among them some above U+FFFF and
# some of U+E000..U+FFFF, which Java sorts the other way round.
_LETTERS = st.sampled_from(["a", "b", "\u00e9", "\ud7ff", "\ue000", "\uffff", "\U0001f600"])
TEXTS = st.text(_LETTERS, min_size=1, max_size=4).map(lambda text: f"persistent://t/n/{text}")
STEPS = st.lists(st.tuples(st.booleans(), TEXTS), max_size=60)
SEEDS = st.integers(0, 2**32)


@pytest.fixture(autouse=True, scope="module", params=["leaves as they are", "small leaves"])
def leaf_sizes(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let sets of a few names have many leaves, too."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "small leaves":
            patch.setattr(name_nodes, "MAX_LEAF_NAMES", 4)
            patch.setattr(name_nodes, "SMALL_NAMES", 2)
            patch.setattr(sorted_names, "FILLED_NAMES", 3)
            patch.setattr(sorted_names, "_FEW_NAMES", 1)
        yield


def numbered(count: int) -> list[bytes]:
    """Names of different lengths, in Java's order."""
    return in_java_order(f"persistent://t/n/{n * 7919 % 100_003}".encode() for n in range(count))


def depth(node: Node | None) -> int:
    if node is None or not children_of(node):
        return 0
    return 1 + max(depth(node[LEFT]), depth(node[RIGHT]))


def check_nodes(node: Node) -> list[bytes]:
    """Return a node's names after checking its figures."""
    if children_of(node):
        left, right = check_nodes(node[LEFT]), check_nodes(node[RIGHT])
        assert java_order(left[-1]) < node[SPLIT] <= java_order(right[0])
        names = left + right
        assert node[LEAVES] == node[LEFT][LEAVES] + node[RIGHT][LEAVES]
    else:
        names = list(node[NAMES])
        assert names
        assert len(names) <= name_nodes.MAX_LEAF_NAMES
        assert node[LEAVES] == 1
    joined = b",".join(names)
    assert (node[COUNT], node[JOINED_BYTES]) == (len(names), len(joined))
    assert node[CRC] == google_crc32c.value(joined)
    return names


def check(names: SortedNames, expected: set[bytes]) -> None:
    """Compare a version's figures with its names."""
    in_order = in_java_order(expected)
    assert list(names.names()) == in_order
    assert [name for leaf in names.leaves() for name in leaf] == in_order
    assert len(names) == len(in_order)
    assert names.hash == topics_hash([name.decode() for name in in_order])
    assert names.name_bytes == sum(map(len, in_order))


def check_balance(names: SortedNames) -> None:
    """Check that no leaf is deeper than subtrees of at most threefold weight allow."""
    root = names._root
    if root is not None:
        most = math.log(root[LEAVES]) / math.log(4 / 3) + 1 if root[LEAVES] > 1 else 0
        assert depth(root) <= most


def changed(
    names: SortedNames, name: bytes, *, added: bool, made: ChangedNodes | None = None
) -> SortedNames:
    return names.with_name(name, made) if added else names.without_name(name, made)


@MANY
@given(st.sets(TEXTS, max_size=300), STEPS)
def test_after_each_change_a_set_equals_the_sorted_list_of_its_names(first, steps) -> None:
    expected = {name.encode() for name in first}
    names = SortedNames.from_sorted(in_java_order(expected))
    for added, text in steps:
        name = text.encode()
        names = changed(names, name, added=added)
        (expected.add if added else expected.discard)(name)
        assert names.hash == topics_hash([one.decode() for one in expected])
        assert (name in names) is added
    check(names, expected)


@MANY
@given(SEEDS, st.integers(0, 3_000), st.floats(0.2, 0.8))
def test_the_figures_of_every_node_are_correct_and_the_tree_is_balanced(
    seed, count, share_added
) -> None:
    random = Random(seed)
    all_names = numbered(3_000)
    expected = set(all_names[:count])
    names = SortedNames.from_sorted(all_names[:count])
    for _ in range(600):
        name = random.choice(all_names)
        added = random.random() < share_added
        names = changed(names, name, added=added)
        (expected.add if added else expected.discard)(name)
    if names._root is not None:
        assert check_nodes(names._root) == in_java_order(expected)
    check_balance(names)


@MANY
@given(st.sets(TEXTS, min_size=1, max_size=300), st.lists(st.sets(TEXTS), max_size=6), STEPS)
def test_sets_of_shared_nodes_change_independently(first, lacking, steps) -> None:
    # Sets of a common origin
    base = {name.encode() for name in first}
    expected = [base] + [base - {name.encode() for name in names} for names in lacking]
    names = [SortedNames.from_sorted(in_java_order(base))] * len(expected)
    for index, wanted in enumerate(expected):
        for name in base - wanted:
            names[index] = names[index].without_name(name)
    for added, text in steps:
        name, made = text.encode(), ChangedNodes()
        before = names
        names = [changed(one, name, added=added, made=made) for one in before]
        expected = [one | {name} if added else one - {name} for one in expected]
    for one, wanted in zip(names, expected, strict=True):
        check(one, wanted)
        if one._root is not None:
            check_nodes(one._root)


def test_sets_that_share_a_leaf_share_its_changed_version() -> None:
    base = SortedNames.from_sorted(numbered(3_000))
    other = base.without_name(numbered(3_000)[0])
    name, made = numbered(3_000)[-1] + b"x", ChangedNodes()
    one, two = base.with_name(name, made), other.with_name(name, made)
    roots = (one._root, two._root)
    assert len({id(leaf_for(root, java_order(name))) for root in roots if root is not None}) == 1


@MANY
@given(st.sets(TEXTS, max_size=300), STEPS)
def test_old_versions_are_not_changed_by_later_changes(
    first: set[str], steps: list[tuple[bool, str]]
) -> None:
    expected = {name.encode() for name in first}
    names = SortedNames.from_sorted(in_java_order(expected))
    versions = [(names, frozenset(expected))]
    for added, text in steps:
        names = changed(names, text.encode(), added=added)
        (expected.add if added else expected.discard)(text.encode())
        versions.append((names, frozenset(expected)))
    for version, known in versions[:: max(1, len(versions) // 20)]:
        check(version, set(known))


@MANY
@given(st.sets(TEXTS, max_size=200), STEPS, st.data())
def test_the_changes_between_any_two_versions_are_their_differences(first, steps, data) -> None:
    versions = [SortedNames.from_sorted(in_java_order(name.encode() for name in first))]
    for added, text in steps:
        versions.append(changed(versions[-1], text.encode(), added=added))
    versions.append(SortedNames.from_sorted(list(versions[-1].names())))  # of no common origin
    one, other = (data.draw(st.sampled_from(versions)) for _ in range(2))
    changes, _ = finished(changes_between(one, other, 1 << 30))
    had, has = set(one.names()), set(other.names())
    assert list(changes.added) == in_java_order(has - had)
    assert list(changes.removed) == in_java_order(had - has)


@MANY
@given(SEEDS, st.integers(1, 2_000), st.integers(1, 2_000))
def test_the_changes_between_large_versions_are_their_differences(
    seed: int, count: int, changes: int
) -> None:
    random = Random(seed)
    all_names = numbered(2_500)
    before = SortedNames.from_sorted(all_names[:count])
    after = before
    for _ in range(changes):
        name = random.choice(all_names)
        after = changed(after, name, added=random.random() < 0.5)
    forth, _ = finished(changes_between(before, after, 1 << 30))
    back, _ = finished(changes_between(after, before, 1 << 30))
    assert list(forth.added) == in_java_order({*after.names()} - {*before.names()})
    assert list(forth.removed) == in_java_order({*before.names()} - {*after.names()})
    assert (forth.added, forth.removed) == (back.removed, back.added)


@MANY
@given(st.sets(TEXTS, max_size=300), st.lists(st.integers(1, 100), max_size=20))
def test_a_builder_accepts_the_names_in_any_pieces(names: set[str], pieces: list[int]) -> None:
    in_order = in_java_order(name.encode() for name in names)
    builder = SortedNamesBuilder()
    start = 0
    for size in [*pieces, len(in_order)]:
        builder.extend(in_order[start : start + size])
        start += size
    check(builder.finished(), set(in_order))


@MANY
@given(st.sets(TEXTS, max_size=400), st.sets(TEXTS, max_size=200))
def test_own_objects_are_returned_for_names_of_the_set_only(own, wanted) -> None:
    names = SortedNames.from_sorted(in_java_order(name.encode() for name in own))
    ids = {name: id(name) for name in names.names()}
    asked = in_java_order(name.encode() for name in wanted)
    found = names.own_objects(asked)
    assert found == asked
    for one, given_name in zip(found, asked, strict=True):
        assert id(one) == ids.get(one, id(given_name))


@MANY
@given(st.sets(TEXTS, max_size=300), STEPS)
def test_versions_are_alike_exactly_when_their_names_are_equal(first, steps) -> None:
    names = [SortedNames.from_sorted(in_java_order(name.encode() for name in first))]
    for added, text in steps:
        names.append(changed(names[-1], text.encode(), added=added))
    one, other = names[0], names[-1]
    equal = finished(alike(one, other))
    assert equal is (list(one.names()) == list(other.names()))
    assert not equal or one.fingerprint == other.fingerprint
    assert (one.identity == other.identity) <= equal


def test_a_set_emptied_name_by_name_is_the_empty_set() -> None:
    names = SortedNames.from_sorted(numbered(1_000))
    for name in numbered(1_000):
        names = names.without_name(name)
    assert names is EMPTY_NAMES


@MANY
@given(st.binary(max_size=100), st.integers(0, 4_000_000))
def test_a_shifted_crc_accounts_for_the_following_bytes(text: bytes, size_bytes: int) -> None:
    zeros = bytes(size_bytes)
    shifted = shift_crc(google_crc32c.value(text), size_bytes)
    assert shifted ^ google_crc32c.value(zeros) == google_crc32c.value(text + zeros)


@MANY
@given(st.integers(0, 2**32 - 1), st.integers(-4_000_000, 4_000_000))
def test_a_crc_shift_can_be_reversed(crc: int, size_bytes: int) -> None:
    assert shift_crc(shift_crc(crc, size_bytes), -size_bytes) == crc


@MANY
@given(st.binary(max_size=300), st.binary(min_size=1, max_size=300), st.integers(0, 12_000))
def test_the_crc_of_two_texts_is_combined_from_their_crcs(first, pattern, times) -> None:
    # Up to 3.6 MB
    second = pattern * times
    combined = combine_crc(google_crc32c.value(first), google_crc32c.value(second), len(second))
    assert combined == google_crc32c.value(first + second)
