"""A set's first version, built while the namespace changes."""

import asyncio

import pytest

from broker.stores.changes import StoreError
from tests.support.clocks.settle import settle, started
from tests.support.watches.followed import Followed, Listener, texts

AS = "t/n/a.*"


async def reading(*names: str) -> Followed:
    """Return a watched namespace; later reads of the store are held."""
    followed = await Followed.of(*names)
    await followed.listener("t/n/none")
    followed.filter.asked.clear()
    followed.filter.go_on.clear()
    return followed


async def test_a_set_holds_the_matching_names_as_the_objects_of_the_namespace() -> None:
    followed = await Followed.of("a1", "a2", "b1")
    watched = await followed.watch.watched_set(AS)
    assert texts(watched.names) == ["a1", "a2"]
    everything = {id(name) for name in followed.watch.sets.everything.names()}
    assert {id(name) for name in watched.names.names()} <= everything


async def test_a_pattern_that_matches_all_names_shares_the_set_of_the_namespace() -> None:
    followed = await Followed.of("a1", "b1")
    watched = await followed.watch.watched_set(".*")
    assert watched.names is followed.watch.sets.everything


@pytest.mark.parametrize("pattern", [AS, ".*"])
async def test_changes_during_the_build_of_a_set_are_included(pattern: str) -> None:
    followed = await reading("a1", "a2", "b1")
    making = await started(followed.watch.watched_set(pattern))
    await followed.changed(added=["a3", "b2"], removed=["a1"])
    followed.filter.go_on.set()
    watched = await making
    kept = [name for name in ("a2", "a3", "b1", "b2") if pattern != AS or name.startswith("a")]
    assert texts(watched.names) == kept


async def test_a_topic_added_during_the_read_of_the_store_is_included_once() -> None:
    followed = await reading("a1")
    followed.filter.go_on.set()
    followed.store.go_on.clear()
    making = await started(followed.watch.watched_set(AS))
    await followed.change(added=["a2"])
    followed.store.go_on.set()
    await settle()
    listener = Listener(await making)
    await followed.tell()
    # The store reported the change before the feed
    assert texts(listener.watched.names) == ["a1", "a2"]
    assert listener.updates == []


@pytest.mark.parametrize("there_at_first", [False, True], ids=["comes and goes", "goes and comes"])
async def test_a_change_undone_during_the_build_of_a_set_has_no_effect(
    there_at_first: bool,
) -> None:
    # The store has changed, the follower has not noticed yet
    followed = await reading("a1", *["a2"] * there_at_first)
    first, second = ("removed", "added") if there_at_first else ("added", "removed")
    await followed.change(**{first: ["a2"]})
    making = await started(followed.watch.watched_set(AS))
    assert followed.filter.asked == [AS]
    await followed.tell()
    await followed.changed(**{second: ["a2"]})
    followed.filter.go_on.set()
    assert texts((await making).names) == (["a1", "a2"] if there_at_first else ["a1"])


async def test_a_set_ahead_of_the_feed_receives_no_repeated_update() -> None:
    followed = await reading("a1", "a2")
    followed.filter.go_on.set()
    await followed.changed(added=["a3"], removed=["a1"])
    listener = await followed.listener(AS)
    ahead = texts(listener.watched.names)
    assert ahead == texts(listener.watched.names) == ["a2", "a3"]
    assert listener.updates == []


async def test_simultaneous_watches_of_a_pattern_build_its_set_once() -> None:
    followed = await reading("a1", "b1")
    asking = [await started(followed.watch.watched_set(AS)) for _ in range(2)]
    followed.filter.go_on.set()
    one, other = [await each for each in asking]
    assert one is other
    assert followed.filter.asked == [AS]


async def test_a_watch_of_a_known_pattern_reuses_its_set_without_a_read() -> None:
    followed = await reading("a1", "b1")
    followed.filter.go_on.set()
    listener = await followed.listener(AS)
    asked = followed.store.asked
    again = await followed.watch.watched_set(AS)
    assert again is listener.watched
    assert (followed.filter.asked, followed.store.asked) == ([AS], asked)


async def test_a_second_watch_gets_the_set_when_the_first_is_cancelled() -> None:
    followed = await reading("a1", "b1")
    first, second = [await started(followed.watch.watched_set(AS)) for _ in range(2)]
    first.cancel()
    await settle()
    followed.filter.go_on.set()
    assert texts((await second).names) == ["a1"]
    assert followed.filter.asked == [AS]


async def test_no_set_and_no_task_remain_when_all_watches_are_cancelled() -> None:
    followed = await reading("a1", "b1")
    before, tasks = followed.watch.sets.held_bytes, asyncio.all_tasks()
    asking = [await started(followed.watch.watched_set(AS)) for _ in range(2)]
    for each in asking:
        each.cancel()
    await settle()
    assert asyncio.all_tasks() == tasks
    followed.filter.go_on.set()
    await followed.changed(added=["a2"])
    assert followed.watch.sets.get(AS) is None
    assert followed.watch.sets.held_bytes - before <= 100


@pytest.mark.parametrize("turns", range(6))
async def test_a_watch_during_the_cancellation_of_a_build_gets_its_set(turns: int) -> None:
    followed = await reading("a1", "b1")
    first = await started(followed.watch.watched_set(AS))
    first.cancel()
    for _ in range(turns):
        await asyncio.sleep(0)
    second = await started(followed.watch.watched_set(AS))
    followed.filter.go_on.set()
    await settle()
    assert texts(second.result().names) == ["a1"]


@pytest.mark.parametrize("turns", range(12))
async def test_a_set_finished_as_its_only_watch_is_cancelled_is_forgotten(turns: int) -> None:
    followed = await reading("a1", "b1")
    asking = await started(followed.watch.watched_set(AS))
    followed.filter.go_on.set()
    for _ in range(turns):
        await asyncio.sleep(0)
    left = asking.cancel()
    await settle()
    assert (followed.watch.sets.get(AS) is None) is left


async def test_a_failed_build_raises_its_error_to_all_waiters() -> None:
    followed = await reading("a1")
    followed.store.go_on.clear()
    asking = [await started(followed.watch.watched_set(AS)) for _ in range(2)]
    followed.store.fails = True
    followed.store.go_on.set()
    for each in asking:
        with pytest.raises(StoreError):
            await each
    assert followed.watch.sets.get(AS) is None


async def test_a_failed_build_is_repeated_for_the_next_watch() -> None:
    followed = await reading("a1")
    followed.filter.go_on.set()
    followed.store.fails = True
    with pytest.raises(StoreError):
        await followed.watch.watched_set(AS)
    followed.store.fails = False
    assert texts((await followed.watch.watched_set(AS)).names) == ["a1"]


async def test_a_set_of_a_deleted_namespace_is_empty() -> None:
    followed = await reading("a1")
    await followed.changed(removed=["a1"])
    await followed.store.delete_namespace(followed.watch.namespace)
    watched = await followed.watch.watched_set(AS)
    assert texts(watched.names) == []
