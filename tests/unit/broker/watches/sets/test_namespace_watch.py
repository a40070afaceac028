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


async def test_names_are_read_once_for_all_who_ask() -> None:
    followed = await Followed.of("a1", "b1")
    followed.store.go_on.clear()
    asking = [await started(followed.watch.watched_set(pattern)) for pattern in (".*", ".*")]
    assert (followed.store.asked, followed.watch.is_read) == (1, False)
    followed.store.go_on.set()
    for each in asking:
        assert texts((await each).names) == ["a1", "b1"]
    assert (followed.store.asked, followed.watch.is_read) == (1, True)


async def test_what_could_not_be_read_is_read_for_who_asks_next() -> None:
    followed = await Followed.of("a1")
    followed.store.fails = True
    with pytest.raises(StoreError):
        await followed.watch.watched_set(".*")
    assert not followed.watch.is_read
    followed.store.fails = False
    assert texts((await followed.watch.watched_set(".*")).names) == ["a1"]


async def test_who_leaves_while_names_are_read_takes_them_from_nobody() -> None:
    followed = await Followed.of("a1")
    followed.store.go_on.clear()
    first, second = [await started(followed.watch.watched_set(".*")) for _ in range(2)]
    first.cancel()
    await settle()
    followed.store.go_on.set()
    assert texts((await second).names) == ["a1"]


async def test_what_changes_while_names_are_read_is_told_once() -> None:
    # The store was queried before the change, and answers after the change
    followed = await Followed.of("a1")
    followed.store.go_on.clear()
    asking = await started(followed.watch.watched_set(".*"))
    await followed.change(added=["a2"])
    await followed.tell()
    followed.store.go_on.set()
    watched = await asking
    await followed.tell()
    assert texts(watched.names) == ["a1", "a2"]


@pytest.mark.parametrize("when", ["reading", "making", "followed"])
async def test_a_namespace_that_is_followed_no_more_leaves_no_task(when: str) -> None:
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


async def test_a_namespace_that_is_followed_no_more_is_freed_without_the_collector() -> None:
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


async def test_what_is_watched_no_more_is_freed_in_turns_of_its_own() -> None:
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


async def test_a_change_is_applied_to_the_sets_its_names_belong_to() -> None:
    followed = await Followed.of("a1", "b1")
    everything, some = await followed.listener(), await followed.listener(AS)
    await followed.change(added=["a2"])
    await followed.change(added=["b2"], removed=["b1"])
    await followed.tell()
    assert everything.updates == [(["a2"], []), (["b2"], ["b1"])]
    assert some.updates == [(["a2"], [])]
    assert texts(some.watched.names) == ["a1", "a2"]
    assert (followed.store.asked, followed.totals.relistings) == (2, 0)


async def test_a_change_that_is_known_already_is_ignored() -> None:
    followed = await Followed.of("a1")
    listener = await followed.listener()
    followed.watch.push(Change(NAMESPACE, 1, [], [b"persistent://t/n/a1"]))
    await settle()
    assert (listener.updates, followed.totals.relistings) == ([], 0)


async def test_a_change_without_its_names_is_never_taken_for_known() -> None:
    # The store was restored to an older state
    followed = await Followed.of("a1")
    listener = await followed.listener()
    followed.store._snapshots.clear()
    followed.watch.push(Change(NAMESPACE, 0, complete=False))
    await settle()
    assert listener.updates == [([], ["a1"])]


async def test_after_a_gap_the_namespace_is_listed_again_and_told_at_once() -> None:
    followed = await Followed.of("a1", "a2")
    everything, some = await followed.listener(), await followed.listener(AS)
    # The first change is lost
    await followed.change(added=["a3", "b1"])
    await followed.change(removed=["a1"])
    await followed.tell(skip=1)
    assert everything.updates == [(["a3", "b1"], ["a1"])]
    assert some.updates == [(["a3"], ["a1"])]
    assert followed.totals.relistings == 1


async def test_after_listing_again_the_feed_goes_on_from_the_newest() -> None:
    # Three changes, of which the first is lost; the store has all
    followed = await Followed.of("a1")
    listener = await followed.listener()
    for name in ("a2", "a3", "a4"):
        await followed.change(added=[name])
    await followed.tell(skip=1)
    await followed.change(added=["a5"])
    await followed.tell()
    assert listener.updates == [(["a2", "a3", "a4"], []), (["a5"], [])]
    assert followed.totals.relistings == 1


@pytest.mark.parametrize("count", [MAX_TOLD_NAMES, MAX_TOLD_NAMES + 1])
async def test_a_change_whose_names_are_not_told_is_one_update_as_well(count: int) -> None:
    followed = await Followed.of("a1")
    listener = await followed.listener()
    names = [f"b{number:06d}" for number in range(count)]
    await followed.change(added=names)
    await followed.tell()
    await followed.until_idle()
    assert listener.updates == [(names, [])]
    assert followed.totals.relistings == (count > MAX_TOLD_NAMES)


async def test_nothing_is_told_when_nothing_was_missed() -> None:
    followed = await Followed.of("a1")
    listener = await followed.listener()
    await followed.change(added=["a2"])
    await followed.change(removed=["a2"])
    followed.watch.push(Change(NAMESPACE, 3, complete=False))
    await settle()
    await followed.tell()
    assert (listener.updates, followed.totals.relistings) == ([], 1)


async def test_what_was_told_before_changes_were_missed_is_told_as_it_differs() -> None:
    # Known are 1, 2 and 3
    followed = await Followed.of("a1", "a2", "a3")
    listener = await followed.listener()
    # The store was unavailable; now the topics are 2, 4 and 5
    await followed.change(added=["a4"], removed=["a1"])
    await followed.change(added=["a5"], removed=["a3"])
    followed.watch.push(Change(NAMESPACE, 3, complete=False))
    await settle()
    assert listener.updates == [(["a4", "a5"], ["a1", "a3"])]


async def test_a_change_without_names_moves_the_version_on() -> None:
    # Partition counts or properties have changed
    followed = await Followed.of("a1")
    listener = await followed.listener()
    followed.watch.push(Change(NAMESPACE, 2))
    followed.watch.push(Change(NAMESPACE, 3, [b"persistent://t/n/a2"]))
    await settle()
    assert (listener.updates, followed.totals.relistings) == ([(["a2"], [])], 0)


async def test_system_topics_and_the_other_domain_are_not_watched() -> None:
    followed = await Followed.of("a1")
    listener = await followed.listener()
    names = [*full("__change_events"), "non-persistent://t/n/a2"]
    await followed.store.apply(NAMESPACE, TopicChanges([name.encode() for name in names]))
    await followed.tell()
    assert (listener.updates, texts(listener.watched.names)) == ([], ["a1"])
    assert followed.totals.relistings == 0


async def test_a_namespace_that_is_deleted_and_made_again_is_followed_through() -> None:
    # A second broker deletes the topic
    followed = await Followed.of("a1")
    listener = await followed.listener()
    await followed.change(removed=["a1"])
    await followed.tell()
    await followed.store.delete_namespace(NAMESPACE)
    followed.feed._queued.clear()
    followed.watch.push(Change(NAMESPACE, 3, complete=False))
    await settle()
    await followed.change(added=["a2"])
    await followed.change(added=["a3"])
    await followed.tell()
    # Sequentially, or simultaneously
    assert texts(listener.watched.names) == texts(listener.names) == ["a2", "a3"]
    assert [added for added, _ in listener.updates] in (
        [[], ["a2"], ["a3"]],
        [[], ["a2", "a3"]],
    )


async def test_a_namespace_that_vanished_with_its_topics_tells_that_they_are_gone() -> None:
    followed = await Followed.of("a1", "a2")
    listener = await followed.listener()
    followed.store._snapshots.clear()
    followed.watch.push(Change(NAMESPACE, 2, complete=False))
    await settle()
    assert listener.updates == [([], ["a1", "a2"])]


async def test_one_change_costs_a_set_one_update_and_as_shipped_one_a_name() -> None:
    for one_by_one in (False, True):
        followed = await Followed.of("a1", one_by_one=one_by_one)
        listener = await followed.listener()
        await followed.change(added=["a2", "a3"], removed=["a1"])
        await followed.tell()
        at_once = [(["a2", "a3"], ["a1"])]
        assert listener.updates == (
            [([], ["a1"]), (["a2"], []), (["a3"], [])] if one_by_one else at_once
        )


async def test_as_shipped_too_what_was_missed_is_one_update() -> None:
    followed = await Followed.of("a1", one_by_one=True)
    listener = await followed.listener()
    await followed.change(added=["a2", "a3"], removed=["a1"])
    followed.feed._queued.clear()
    followed.watch.push(Change(NAMESPACE, 2, complete=False))
    await settle()
    assert listener.updates == [(["a2", "a3"], ["a1"])]
