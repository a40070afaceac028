"""What can never be part of a cycle costs the garbage collector nothing, and still ends."""

from __future__ import annotations

import gc
import platform
import weakref

import pytest

from broker.watches.names.gc_untrack import untrack
from broker.watches.names.sorted_names import SortedNames

pytestmark = pytest.mark.skipif(
    platform.python_implementation() != "CPython", reason="other collectors know no such call"
)


class Thing:
    """Something that can be watched as it ends."""


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


@pytest.mark.parametrize("change", ["made at once", "with_name", "without_name"])
def test_the_names_of_a_set_are_left_out(change: str) -> None:
    # Given
    all_names = [b"persistent://t/n/%04d" % number for number in range(500)]
    names = SortedNames.from_sorted(all_names)
    # When
    if change == "with_name":
        names = names.with_name(all_names[250] + b"x")
    elif change == "without_name":
        names = names.without_name(all_names[250])
    # Then
    assert not any(map(gc.is_tracked, names.leaves()))
