"""Updates for lagging watchers: made once for all with the same lag."""

import asyncio

import proto.PulsarApi_pb2 as pb
from broker.watches.names.sorted_names import SortedNames
from broker.watches.sets.encoded_names import REMEMBERED_UPDATES, Reconciler
from broker.watches.update_permit import SetUpdate
from server.tasks.cooperative import Steps

PLENTY = 10**6


def names_of(*texts: str) -> SortedNames:
    return SortedNames.from_sorted([text.encode() for text in texts])


def told(update: SetUpdate | None) -> tuple[list[str], list[str], str]:
    """Return an update's added names, removed names, and resulting hash."""
    assert update is not None
    command = pb.BaseCommand.FromString(update.command.frame(1)[8:]).watchTopicUpdate
    assert command.topics_hash == update.after.hash
    return list(command.new_topics), list(command.deleted_topics), command.topics_hash


async def test_a_reconciling_update_has_all_added_and_removed_names() -> None:
    before, after = names_of("a", "b"), names_of("b", "c")
    update = await Reconciler().update(before, after, PLENTY)
    assert told(update) == (["c"], ["a"], after.hash)
    assert update is not None
    assert (update.before, update.after) == (before, after)


async def test_a_reconciling_update_of_many_names_is_made_in_several_turns() -> None:
    came, went = ([f"{kind}{number:05d}" for number in range(3_000)] for kind in "ab")
    reconciler = Reconciler()
    reconciler._steps = Steps(0)
    making = asyncio.create_task(reconciler.update(names_of(*went), names_of(*came), PLENTY))
    turns = 0
    while not making.done():
        await asyncio.sleep(0)
        turns += 1
    update = making.result()
    assert turns > 6
    assert update is not None
    assert len(update.command.buffers(1)) == 2 + 6
    assert told(update)[:2] == (came, went)


async def test_equal_versions_need_no_reconciling_update() -> None:
    assert await Reconciler().update(names_of("a"), names_of("a"), PLENTY) is None


async def test_watchers_with_the_same_lag_share_a_reconciling_update() -> None:
    reconciler, before, after = Reconciler(), names_of("a"), names_of("b")
    for _ in range(3):
        reconciler.fell_behind()
    updates = await asyncio.gather(*(reconciler.update(before, after, PLENTY) for _ in range(3)))
    assert updates[0] is updates[1] is updates[2] is not None


async def test_a_part_of_a_reconciling_update_is_shared_and_followed_by_the_rest() -> None:
    reconciler, before, after = Reconciler(), names_of("a"), names_of("b", "c")
    reconciler.fell_behind()
    first = await reconciler.update(before, after, 5)
    again = await reconciler.update(before, after, 5)
    assert first is again
    assert told(first)[:2] == ([], ["a"])
    assert first is not None
    second = await reconciler.update(first.after, after, 10)
    assert told(second) == (["b", "c"], [], after.hash)


async def test_reconciling_updates_are_cached_up_to_a_bound_and_only_while_a_watcher_lags() -> None:
    reconciler, after = Reconciler(), names_of("z")
    reconciler.fell_behind()
    reconciler.fell_behind()
    for text in "abcde":
        await reconciler.update(names_of(text), after, PLENTY)
    assert len(reconciler._known) == REMEMBERED_UPDATES
    reconciler.caught_up()
    assert len(reconciler._known) == REMEMBERED_UPDATES
    reconciler.caught_up()
    assert not reconciler._known
