"""What can never be part of a cycle costs the garbage collector nothing, and still ends."""

from __future__ import annotations

import gc
import platform
import weakref

import pytest

from proto.sorted_names import Leaf, Node, SortedNames
from proto.untracked import untrack

pytestmark = pytest.mark.skipif(
    platform.python_implementation() != "CPython", reason="other collectors know no such call"
)


class Thing:
    """Something that can be watched as it ends."""


def nodes(node: Node) -> list[Node]:
    return [node] if isinstance(node, Leaf) else [node, *nodes(node.left), *nodes(node.right)]


def all_nodes(names: SortedNames) -> list[Node]:
    assert names._root is not None
    return nodes(names._root)


def a_set() -> SortedNames:
    return SortedNames.from_sorted([b"persistent://t/n/%04d" % number for number in range(500)])


def test_the_collector_does_not_visit_what_was_left_out() -> None:
    thing = Thing()
    assert gc.is_tracked(thing)
    untrack(thing)
    assert not gc.is_tracked(thing)


def test_what_was_left_out_ends_with_its_last_reference() -> None:
    thing = Thing()
    ended = weakref.ref(thing)
    untrack(thing)
    del thing
    assert ended() is None


def test_the_nodes_of_a_set_are_left_out() -> None:
    assert not any(map(gc.is_tracked, all_nodes(a_set())))


@pytest.mark.parametrize("change", ["with_name", "without_name"])
def test_the_few_nodes_of_a_single_change_are_not_worth_the_call(change: str) -> None:
    before = a_set()
    name = b"persistent://t/n/0250"
    after = before.without_name(name) if change == "without_name" else before.with_name(name + b"x")
    before_it = set(map(id, all_nodes(before)))
    made = [node for node in all_nodes(after) if id(node) not in before_it]
    assert made
    assert all(map(gc.is_tracked, made))
