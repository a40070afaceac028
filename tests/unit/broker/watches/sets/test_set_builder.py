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


async def test_a_set_is_what_its_pattern_keeps_as_the_namespaces_own_objects() -> None:
    followed = await Followed.of("a1", "a2", "b1")
    watched = await followed.watch.watched_set(AS)
    assert texts(watched.names) == ["a1", "a2"]
    everything = {id(name) for name in followed.watch.sets.everything.names()}
    assert {id(name) for name in watched.names.names()} <= everything


async def test_a_pattern_that_keeps_all_is_the_namespace_itself() -> None:
    followed = await Followed.of("a1", "b1")
    watched = await followed.watch.watched_set(".*")
    assert watched.names is followed.watch.sets.everything


@pytest.mark.parametrize("pattern", [AS, ".*"])
async def test_what_comes_and_goes_while_a_set_is_made_is_in_it(pattern: str) -> None:
    followed = await reading("a1", "a2", "b1")
    making = await started(followed.watch.watched_set(pattern))
    await followed.change(added=["a3", "b2"], removed=["a1"])
    await followed.tell()
    followed.filter.go_on.set()
    watched = await making
    kept = [name for name in ("a2", "a3", "b1", "b2") if pattern != AS or name.startswith("a")]
    assert texts(watched.names) == kept


async def test_what_comes_while_the_store_is_asked_is_in_the_set_once() -> None:
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
async def test_what_is_back_as_it_was_when_the_set_is_made_is_in_it_as_it_is(
    there_at_first: bool,
) -> None:
    # The store has changed, the follower has not noticed yet
    followed = await reading("a1", *["a2"] * there_at_first)
    first, second = ("removed", "added") if there_at_first else ("added", "removed")
    await followed.change(**{first: ["a2"]})
    making = await started(followed.watch.watched_set(AS))
    assert followed.filter.asked == [AS]
    await followed.tell()
    await followed.change(**{second: ["a2"]})
    await followed.tell()
    followed.filter.go_on.set()
    assert texts((await making).names) == (["a1", "a2"] if there_at_first else ["a1"])


async def test_a_set_that_is_ahead_of_the_feed_is_told_nothing_twice() -> None:
    followed = await reading("a1", "a2")
    followed.filter.go_on.set()
    await followed.change(added=["a3"], removed=["a1"])
    listener = await followed.listener(AS)
    ahead = texts(listener.watched.names)
    await followed.tell()
    assert ahead == texts(listener.watched.names) == ["a2", "a3"]
    assert listener.updates == []


async def test_two_who_ask_for_a_pattern_have_it_made_once() -> None:
    followed = await reading("a1", "b1")
    asking = [await started(followed.watch.watched_set(AS)) for _ in range(2)]
    followed.filter.go_on.set()
    one, other = [await each for each in asking]
    assert one is other
    assert followed.filter.asked == [AS]


async def test_who_asks_for_a_set_that_is_there_makes_nothing() -> None:
    followed = await reading("a1", "b1")
    followed.filter.go_on.set()
    listener = await followed.listener(AS)
    asked = followed.store.asked
    again = await followed.watch.watched_set(AS)
    assert again is listener.watched
    assert (followed.filter.asked, followed.store.asked) == ([AS], asked)


async def test_the_second_gets_the_set_when_the_first_leaves() -> None:
    followed = await reading("a1", "b1")
    first, second = [await started(followed.watch.watched_set(AS)) for _ in range(2)]
    first.cancel()
    await settle()
    followed.filter.go_on.set()
    assert texts((await second).names) == ["a1"]
    assert followed.filter.asked == [AS]


async def test_nothing_is_left_when_all_who_asked_have_left() -> None:
    followed = await reading("a1", "b1")
    before, tasks = followed.watch.sets.held_bytes, asyncio.all_tasks()
    asking = [await started(followed.watch.watched_set(AS)) for _ in range(2)]
    for each in asking:
        each.cancel()
    await settle()
    assert asyncio.all_tasks() == tasks
    followed.filter.go_on.set()
    await followed.change(added=["a2"])
    await followed.tell()
    assert followed.watch.sets.get(AS) is None
    assert followed.watch.sets.held_bytes - before <= 100


@pytest.mark.parametrize("turns", range(6))
async def test_who_asks_while_a_making_is_given_up_gets_the_set(turns: int) -> None:
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
async def test_a_set_is_forgotten_that_is_finished_as_its_only_watcher_leaves(turns: int) -> None:
    followed = await reading("a1", "b1")
    asking = await started(followed.watch.watched_set(AS))
    followed.filter.go_on.set()
    for _ in range(turns):
        await asyncio.sleep(0)
    left = asking.cancel()
    await settle()
    assert (followed.watch.sets.get(AS) is None) is left


async def test_everybody_who_waits_is_told_why_it_cannot_be_made() -> None:
    followed = await reading("a1")
    followed.store.go_on.clear()
    asking = [await started(followed.watch.watched_set(AS)) for _ in range(2)]
    followed.store.fails = True
    followed.store.go_on.set()
    for each in asking:
        with pytest.raises(StoreError):
            await each
    assert followed.watch.sets.get(AS) is None


async def test_what_could_not_be_made_is_made_for_who_asks_next() -> None:
    followed = await reading("a1")
    followed.filter.go_on.set()
    followed.store.fails = True
    with pytest.raises(StoreError):
        await followed.watch.watched_set(AS)
    followed.store.fails = False
    assert texts((await followed.watch.watched_set(AS)).names) == ["a1"]


async def test_a_set_of_a_namespace_that_is_gone_is_empty() -> None:
    followed = await reading("a1")
    await followed.change(removed=["a1"])
    await followed.tell()
    await followed.store.delete_namespace(followed.watch.namespace)
    watched = await followed.watch.watched_set(AS)
    assert texts(watched.names) == []
