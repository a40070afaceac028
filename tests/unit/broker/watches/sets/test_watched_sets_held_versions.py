"""Held versions are counted once, and only while held."""

from collections.abc import Generator
from typing import TypeVar

import pytest

from broker.watches.names.sorted_names import SortedNames
from broker.watches.sets.watched_sets import HeldVersions

T = TypeVar("T")


def taken(steps: Generator[None, None, T]) -> T:
    try:
        while True:
            next(steps)
    except StopIteration as done:
        result: T = done.value
        return result


def names_of(*names: bytes) -> SortedNames:
    return SortedNames.from_sorted(names)


@pytest.fixture
def versions() -> HeldVersions:
    return HeldVersions()


def test_a_version_with_several_holders_is_counted_once(versions: HeldVersions) -> None:
    names = names_of(b"a", b"b")
    versions.hold(names)
    versions.hold(names)
    assert versions.own_bytes == names.own_bytes > 0
    versions.release(names)
    assert versions.own_bytes == names.own_bytes
    versions.release(names)
    assert versions.own_bytes == 0


@pytest.mark.parametrize("holders", [1, 2])
@pytest.mark.parametrize("known", [False, True], ids=["a new version", "one that others hold"])
def test_exchanging_versions_holds_the_new_and_releases_the_old_version(
    versions, holders, known
) -> None:
    before, after = names_of(b"a", b"b"), names_of(b"a", b"b", b"c")
    for _ in range(holders):
        versions.hold(before)
    if known:
        versions.hold(after)
    versions.exchange(before, after)
    assert versions.own_bytes == after.own_bytes + (before.own_bytes if holders > 1 else 0)
    assert taken(versions.like(names_of(b"a", b"b", b"c"))) is after
    again = names_of(b"a", b"b")
    assert taken(versions.like(again)) is (before if holders > 1 else again)


def test_exchanging_a_version_for_itself_is_a_no_op(versions: HeldVersions) -> None:
    names = names_of(b"a")
    versions.hold(names)
    versions.exchange(names, names)
    assert versions.own_bytes == names.own_bytes
    versions.release(names)
    assert versions.own_bytes == 0


def test_versions_with_the_same_crc_and_different_names_are_not_equal(
    versions, monkeypatch
) -> None:
    monkeypatch.setattr(SortedNames, "crc", 7)
    versions.hold(names_of(b"a", b"b"))
    other = names_of(b"a", b"c")
    assert taken(versions.like(other)) is other
