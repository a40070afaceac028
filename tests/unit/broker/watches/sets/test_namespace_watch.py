"""A followed namespace: the feed's changes reach watchers, and gaps are closed by listing."""

import asyncio
import gc
from weakref import ref

import pytest

from broker.stores.changes import MAX_TOLD_NAMES, Change, StoreError, TopicChanges
from tests.support.clocks.settle import settle, started
from tests.support.watches.followed import NAMESPACE, Followed, full, texts

AS = "t/n/a.*"


# -- reading --------------------------------------------------------------------------------------


async def test_simultaneous_watches_read_the_names_of_a_namespace_once() -> None:
    followed = await Followed.of("a1", "b1")
    followed.store.go_on.clear()
    asking = [await started(followed.watch.watched_set(pattern)) for pattern in (".*", ".*")]
    assert (followed.store.asked, followed.watch.is_read) == (1, False)
    followed.store.go_on.set()
    for each in asking:
        assert texts((await each).names) == ["a1", "b1"]
    assert (followed.store.asked, followed.watch.is_read) == (1, True)


async def test_a_failed_read_of_names_is_repeated_for_the_next_watch() -> None:
    followed = await Followed.of("a1")
    followed.store.fails = True
    with pytest.raises(StoreError):
        await followed.watch.watched_set(".*")
    assert not followed.watch.is_read
    followed.store.fails = False
    assert texts((await followed.watch.watched_set(".*")).names) == ["a1"]


async def test_a_cancelled_watch_does_not_cancel_the_read_of_names_for_another_watch() -> None:
    followed = await Followed.of("a1")
    followed.store.go_on.clear()
    first, second = [await started(followed.watch.watched_set(".*")) for _ in range(2)]
    first.cancel()
    await settle()
    followed.store.go_on.set()
    assert texts((await second).names) == ["a1"]


async def test_a_change_during_the_read_of_names_is_applied_once() -> None:
    # The store was queried before the change, and answers after the change
    followed = await Followed.of("a1")
    followed.store.go_on.clear()
    asking = await started(followed.watch.watched_set(".*"))
    await followed.changed(added=["a2"])
    followed.store.go_on.set()
    watched = await asking
    await followed.tell()
    assert texts(watched.names) == ["a1", "a2"]


@pytest.mark.parametrize("when", ["reading", "making", "followed"])
async def test_stopping_a_namespace_watch_ends_all_its_tasks(when: str) -> None:
    followed, tasks = await Followed.of("a1", "b1"), asyncio.all_tasks()
    if when == "followed":
        await followed.listener()
    (followed.store if when == "reading" else followed.filter).go_on.clear()
    if when != "followed":
        await started(followed.watch.watched_set(AS))
    assert asyncio.all_tasks() > tasks
    followed.watch.stop()
    await settle()
    assert asyncio.all_tasks() == tasks


async def test_a_stopped_namespace_watch_is_freed_without_the_garbage_collector() -> None:
    followed = await Followed.of("a1", "b1")
    await followed.watch.watched_set(AS)
    kept = ref(followed.watch)
    gc.disable()
    try:
        followed.watch.stop()
        del followed
        await settle()
        assert kept() is None
    finally:
        gc.enable()


async def test_unwatched_sets_are_freed_in_later_turns() -> None:
    followed = await Followed.of(*(f"a{number:04d}" for number in range(1_000)), "b")
    one, other = await followed.listener(AS), await followed.listener(AS)
    disposal = followed.watch._context.disposal
    one.leave()
    followed.watch.leave(one.watched)
    assert len(disposal) == 0
    other.leave()
    followed.watch.leave(other.watched)
    assert len(disposal) == 1
    followed.watch.stop()
    assert len(disposal) == 2
    await settle()
    assert len(disposal) == 0


# -- changes from the feed ------------------------------------------------------------------------


async def test_a_change_updates_only_the_sets_that_match_its_names() -> None:
    followed = await Followed.of("a1", "b1")
    everything, some = await followed.listener(), await followed.listener(AS)
    await followed.change(added=["a2"])
    await followed.changed(added=["b2"], removed=["b1"])
    assert everything.updates == [(["a2"], []), (["b2"], ["b1"])]
    assert some.updates == [(["a2"], [])]
    assert texts(some.watched.names) == ["a1", "a2"]
    assert (followed.store.asked, followed.totals.relistings) == (2, 0)


async def test_an_already_applied_change_is_ignored() -> None:
    followed, listener = await Followed.with_listener("a1")
    followed.watch.push(Change(NAMESPACE, 1, [], [b"persistent://t/n/a1"]))
    await settle()
    assert (listener.updates, followed.totals.relistings) == ([], 0)


async def test_an_incomplete_change_is_never_ignored_as_already_applied() -> None:
    # The store was restored to an older state
    followed, listener = await Followed.with_listener("a1")
    followed.store._snapshots.clear()
    followed.watch.push(Change(NAMESPACE, 0, complete=False))
    await settle()
    assert listener.updates == [([], ["a1"])]


async def test_a_gap_in_the_feed_is_closed_by_a_listing_and_a_single_update() -> None:
    followed = await Followed.of("a1", "a2")
    everything, some = await followed.listener(), await followed.listener(AS)
    # The first change is lost
    await followed.change(added=["a3", "b1"])
    await followed.change(removed=["a1"])
    await followed.tell(skip=1)
    assert everything.updates == [(["a3", "b1"], ["a1"])]
    assert some.updates == [(["a3"], ["a1"])]
    assert followed.totals.relistings == 1


async def test_the_feed_continues_from_the_newest_version_after_a_listing() -> None:
    # Three changes, of which the first is lost; the store has all
    followed, listener = await Followed.with_listener("a1")
    for name in ("a2", "a3", "a4"):
        await followed.change(added=[name])
    await followed.tell(skip=1)
    await followed.changed(added=["a5"])
    assert listener.updates == [(["a2", "a3", "a4"], []), (["a5"], [])]
    assert followed.totals.relistings == 1


@pytest.mark.parametrize("count", [MAX_TOLD_NAMES, MAX_TOLD_NAMES + 1])
async def test_a_change_with_or_without_names_in_the_feed_is_a_single_update(count: int) -> None:
    followed, listener = await Followed.with_listener("a1")
    names = [f"b{number:06d}" for number in range(count)]
    await followed.changed(added=names)
    await followed.until_idle()
    assert listener.updates == [(names, [])]
    assert followed.totals.relistings == (count > MAX_TOLD_NAMES)


async def test_a_listing_without_differences_causes_no_update() -> None:
    followed, listener = await Followed.with_listener("a1")
    await followed.change(added=["a2"])
    await followed.change(removed=["a2"])
    followed.watch.push(Change(NAMESPACE, 3, complete=False))
    await settle()
    await followed.tell()
    assert (listener.updates, followed.totals.relistings) == ([], 1)


async def test_missed_changes_are_reported_as_the_difference_to_the_known_names() -> None:
    # Known are 1, 2 and 3
    followed, listener = await Followed.with_listener("a1", "a2", "a3")
    # The store was unavailable; now the topics are 2, 4 and 5
    await followed.change(added=["a4"], removed=["a1"])
    await followed.change(added=["a5"], removed=["a3"])
    followed.watch.push(Change(NAMESPACE, 3, complete=False))
    await settle()
    assert listener.updates == [(["a4", "a5"], ["a1", "a3"])]


async def test_a_change_without_names_advances_the_version() -> None:
    # Partition counts or properties have changed
    followed, listener = await Followed.with_listener("a1")
    followed.watch.push(Change(NAMESPACE, 2))
    followed.watch.push(Change(NAMESPACE, 3, [b"persistent://t/n/a2"]))
    await settle()
    assert (listener.updates, followed.totals.relistings) == ([(["a2"], [])], 0)


async def test_system_topics_and_non_persistent_topics_are_not_watched() -> None:
    followed, listener = await Followed.with_listener("a1")
    names = [*full("__change_events"), "non-persistent://t/n/a2"]
    await followed.store.apply(NAMESPACE, TopicChanges([name.encode() for name in names]))
    await followed.tell()
    assert (listener.updates, texts(listener.watched.names)) == ([], ["a1"])
    assert followed.totals.relistings == 0


async def test_a_namespace_is_followed_through_its_deletion_and_recreation() -> None:
    # A second broker deletes the topic
    followed, listener = await Followed.with_listener("a1")
    await followed.changed(removed=["a1"])
    await followed.store.delete_namespace(NAMESPACE)
    followed.feed._queued.clear()
    followed.watch.push(Change(NAMESPACE, 3, complete=False))
    await settle()
    await followed.change(added=["a2"])
    await followed.changed(added=["a3"])
    # Sequentially, or simultaneously
    assert texts(listener.watched.names) == texts(listener.names) == ["a2", "a3"]
    assert [added for added, _ in listener.updates] in (
        [[], ["a2"], ["a3"]],
        [[], ["a2", "a3"]],
    )


async def test_a_vanished_namespace_is_reported_as_the_removal_of_all_its_topics() -> None:
    followed, listener = await Followed.with_listener("a1", "a2")
    followed.store._snapshots.clear()
    followed.watch.push(Change(NAMESPACE, 2, complete=False))
    await settle()
    assert listener.updates == [([], ["a1", "a2"])]


async def test_a_change_is_an_update_per_set_and_in_profile_pulsar_an_update_per_name() -> None:
    for one_by_one in (False, True):
        followed = await Followed.of("a1", one_by_one=one_by_one)
        listener = await followed.listener()
        await followed.changed(added=["a2", "a3"], removed=["a1"])
        at_once = [(["a2", "a3"], ["a1"])]
        assert listener.updates == (
            [([], ["a1"]), (["a2"], []), (["a3"], [])] if one_by_one else at_once
        )


async def test_in_profile_pulsar_missed_changes_are_a_single_update() -> None:
    followed, listener = await Followed.with_listener("a1", one_by_one=True)
    await followed.change(added=["a2", "a3"], removed=["a1"])
    followed.feed._queued.clear()
    followed.watch.push(Change(NAMESPACE, 2, complete=False))
    await settle()
    assert listener.updates == [(["a2", "a3"], ["a1"])]
