"""A broker's view of a namespace with several writers; without a database."""

import asyncio

import pytest

from broker.stores.cached_store import SnapshotCache
from broker.stores.changes import Change, ChangeFeeds
from broker.stores.postgresql import view as postgresql_view
from broker.stores.postgresql.view import (
    NOT_THERE,
    KnownNamespace,
    LoggedChange,
    NamespaceView,
    changes_to_publish,
    in_sequence,
    net_changes,
)
from broker.stores.store import NamespaceSnapshot
from tests.support.stores.topic_stores import A, B, topic

KNOWN = KnownNamespace(7, 3)
LOG = [LoggedChange(4, added=[topic("a")]), LoggedChange(5, removed=[topic("a")])]


def newest(version: int, number: int = 7) -> KnownNamespace:
    return KnownNamespace(number, version)


def test_changes_in_the_log_are_published_individually() -> None:
    assert changes_to_publish(A, KNOWN, newest(5), LOG) == [
        Change(A, 4, [topic("a")], ()),
        Change(A, 5, (), [topic("a")]),
    ]


@pytest.mark.parametrize(
    ("log", "version", "number"),
    [
        (LOG[1:], 5, 7),  # the first was pruned
        (LOG[:1], 5, 7),  # more than is worth reading
        ([LOG[0], LoggedChange(5, complete=False)], 5, 7),  # a large change
        (LOG, 5, 8),  # another namespace of the same name
        ((), 5, 7),
    ],
)
def test_an_incomplete_log_is_published_as_a_single_change_without_names(
    log, version, number
) -> None:
    assert not in_sequence(KNOWN, newest(version, number), log)
    assert changes_to_publish(A, KNOWN, newest(version, number), log) == [
        Change(A, version, complete=False)
    ]


def test_a_deleted_namespace_is_published_with_its_own_version() -> None:
    assert changes_to_publish(A, KNOWN, KnownNamespace(NOT_THERE, 4), ()) == [
        Change(A, 4, complete=False)
    ]


def test_an_unknown_or_unchanged_namespace_is_not_published() -> None:
    assert changes_to_publish(A, None, newest(5), LOG) == []
    assert changes_to_publish(A, KNOWN, KNOWN, ()) == []


def test_later_changes_override_earlier_changes_in_the_net_change() -> None:
    net = net_changes(
        [
            LoggedChange(1, added=[b"a", b"b"], partitioned={"p": 1, "q": 2}),
            LoggedChange(2, removed=[b"a"], added=[b"c"], partitioned={"p": 0}),
            LoggedChange(3, added=[b"a"], removed=[b"b"]),
        ]
    )
    assert sorted(net.added) == [b"a", b"c"]
    assert list(net.removed) == [b"b"]
    assert net.partitioned == {"p": 0, "q": 2}


async def test_a_published_version_has_its_snapshot_in_the_cache() -> None:
    cache, feeds = SnapshotCache(10_000), ChangeFeeds()
    view, feed = NamespaceView(cache, feeds), feeds.open()
    reader = asyncio.get_running_loop().create_task(anext(feed))
    await asyncio.sleep(0)
    view.show(A, newest(4), NamespaceSnapshot(4), [Change(A, 4)])
    assert (await reader).version == 4
    assert cache.peek(A).version == 4
    assert view.known(A) == newest(4)
    assert view.name_of(7) == A


def test_a_version_without_a_snapshot_evicts_the_cached_snapshot() -> None:
    cache = SnapshotCache(10_000)
    view = NamespaceView(cache, ChangeFeeds())
    view.show(A, newest(4), NamespaceSnapshot(4))
    view.show(A, newest(5), None)
    assert cache.peek(A) is None


def test_a_namespace_id_maps_to_its_name_only_while_the_namespace_exists() -> None:
    view = NamespaceView(SnapshotCache(10_000), ChangeFeeds())
    view.show(A, newest(4), None)
    view.show(A, KnownNamespace(NOT_THERE, 5), None)
    view.show(B, KnownNamespace(NOT_THERE, 0), None)
    assert view.name_of(7) is None
    assert view.name_of(NOT_THERE) is None
    view.show(A, newest(6, 9), None)
    assert view.name_of(9) == A


def test_a_forgotten_namespace_is_published_for_a_new_listing(monkeypatch) -> None:
    monkeypatch.setattr(postgresql_view, "MAX_KNOWN_NAMESPACES", 1)
    cache = SnapshotCache(10_000)
    view = NamespaceView(cache, ChangeFeeds())
    assert view.known(B) is None
    view.show(A, newest(4), NamespaceSnapshot(4))
    view.show(B, newest(1, 8), None)
    assert len(view) == 1
    assert cache.peek(A) is None
    assert view.name_of(7) is None
    forgotten = view.known(A)
    assert changes_to_publish(A, forgotten, newest(5), LOG) == [Change(A, 5, complete=False)]
