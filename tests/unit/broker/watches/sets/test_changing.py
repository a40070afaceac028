"""Large changes: each set is merged as a whole, and watchers are notified when possible."""

from broker.watches.sets import changing
from broker.watches.sets.watched_sets import WatchedSets
from tests.support.clocks.settle import started
from tests.support.watches.followed import Followed, texts

AS = "t/n/a.*"


def many(letter: str, count: int = 300) -> list[str]:
    return [f"{letter}{number:05d}" for number in range(count)]


async def test_a_large_change_is_reported_to_each_watcher_whose_set_changed() -> None:
    followed = await Followed.of("a", *many("b"))
    everything, some, none = [
        await followed.listener(pattern) for pattern in (".*", AS, "t/n/nothing")
    ]
    await followed.changed(added=many("a"), removed=many("b"))
    await followed.until_idle()
    assert everything.updates == [(many("a"), many("b"))]
    assert (some.updates, none.updates) == ([(many("a"), [])], [])
    assert (some.fallen_behind, none.fallen_behind) == (1, 0)
    assert texts(followed.watch.sets.everything) == ["a", *many("a")]
    assert everything.watched.names is followed.watch.sets.everything


async def test_equal_sets_stay_shared_after_a_large_change() -> None:
    # Two patterns matching the same names
    followed = await Followed.of("a", "b")
    one, other = await followed.listener(AS), await followed.listener("t/n/a+.*")
    assert one.watched.names is other.watched.names
    await followed.changed(added=[*many("a"), "c"])
    await followed.until_idle()
    assert one.watched.names is other.watched.names
    assert len(one.watched.names) == 301


async def test_a_set_built_during_a_large_change_has_all_its_names() -> None:
    followed = await Followed.of("a", "b")
    await followed.listener()
    followed.filter.go_on.clear()
    making = await started(followed.watch.watched_set(AS))
    await followed.changed(added=many("a"), removed=["a"])
    await followed.until_idle()
    followed.filter.go_on.set()
    assert texts((await making).names) == many("a")


async def test_a_watcher_leaving_during_a_large_change_does_not_affect_another_watcher(
    monkeypatch,
) -> None:
    followed = await Followed.of("a", "b")
    leaving, staying = await followed.listener(AS), await followed.listener("t/n/b.*")
    merged = changing.merged

    def merged_as_one_leaves(*names: object) -> object:
        leaving.watched.watchers.clear()
        followed.watch.leave(leaving.watched)
        return merged(*names)  # type: ignore[arg-type]

    monkeypatch.setattr(changing, "merged", merged_as_one_leaves)
    await followed.changed(added=[*many("a"), *many("b")])
    await followed.until_idle()
    assert staying.updates == [(many("b"), [])]
    assert (leaving.updates, followed.watch.sets.get(AS)) == ([], None)
    only_who_stayed = WatchedSets(followed.watch.sets.everything)
    only_who_stayed.add(staying.watched.pattern, staying.watched.names)
    assert followed.watch.sets.held_bytes == only_who_stayed.held_bytes


async def test_a_set_ahead_of_the_feed_is_not_changed_by_a_known_large_change() -> None:
    # The set was built from a store ahead of the feed
    followed = await Followed.of("a")
    await followed.listener()
    await followed.change(added=many("a"))
    ahead = await followed.listener(AS)
    before = ahead.watched.names
    await followed.tell()
    await followed.until_idle()
    assert ahead.watched.names is before
    assert (len(before), ahead.updates) == (301, [])
