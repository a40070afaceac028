"""Hashes waiting for their former consumer; tests/properties has random sequences."""

from broker.messages.subscriptions.key_shared.draining import (
    FORGOTTEN_AT_ONCE,
    DrainingHash,
    DrainingHashes,
)
from broker.messages.subscriptions.key_shared.ranges import MovedHashes
from server.tasks.cooperative import ITEMS_A_STEP
from tests.support.stepwise import finished


def draining_from_a() -> DrainingHashes[str]:
    """Return the state after b took over hashes 1 to 9 while a holds two entries of hash 5."""
    draining: DrainingHashes[str] = DrainingHashes()
    draining.delivered("a", 5)
    draining.delivered("a", 5)
    draining.delivered("a", 12)
    draining.moved([MovedHashes(1, 9, "a", "b")])
    return draining


def test_a_hash_is_blocked_until_its_old_consumer_holds_no_entry_of_the_hash() -> None:
    draining = draining_from_a()
    blocked = [draining.blocks("b", 5), draining.blocks("b", 6), draining.blocks("b", 12)]
    first = draining.settled("a", 5)
    shown = finished(draining.of("a"))
    second = draining.settled("a", 5)
    assert blocked == [True, False, False]
    assert (first, second) == (False, True)
    assert shown == [DrainingHash(5, unacked=1, blocked_attempts=1)]
    assert not draining.blocks("b", 5)
    assert draining.cleared_total("a") == 1
    assert finished(draining.of("a")) == []


def test_a_closed_consumer_blocks_no_hashes() -> None:
    draining = draining_from_a()
    for sticky_hash in (12, 5, 5):
        freed = draining.settled("a", sticky_hash)
    draining.lost("a")
    assert freed
    assert not draining.blocks("b", 5)
    assert draining.cleared_total("a") == 0
    assert finished(draining.of("a")) == []


def test_a_hash_moved_back_to_its_holder_is_not_blocked() -> None:
    draining = draining_from_a()
    draining.moved([MovedHashes(1, 9, "b", "a")])
    assert not draining.blocks("a", 5)
    assert len(draining) == 0


def test_acknowledgements_of_entries_not_held_unblock_no_hash() -> None:
    draining = draining_from_a()
    assert not draining.settled("b", 5)
    assert not draining.settled("a", 99)
    assert draining.blocks("b", 5)


def test_only_the_old_consumer_unblocks_a_hash() -> None:
    # B received an entry out of order.
    draining = draining_from_a()
    draining.delivered("b", 5)
    assert not draining.settled("b", 5)
    assert draining.blocks("b", 5)


def test_emptying_the_state_unblocks_all_hashes() -> None:
    draining = draining_from_a()
    for _ in draining.emptied():
        pass
    assert not draining.blocks("b", 5)
    assert not draining.settled("a", 5)


def test_very_many_draining_hashes_are_listed_and_forgotten_in_steps() -> None:
    draining, count = draining_from_a(), 3 * ITEMS_A_STEP
    for sticky_hash in range(10, 10 + count):
        draining.delivered("a", sticky_hash)
    draining.moved([MovedHashes(10, 10 + count, "a", "b")])
    shown = draining.of("a")
    steps = sum(1 for _ in shown)
    forgotten = [len(draining._held) for _ in draining.emptied()]
    assert steps == 4
    assert forgotten[:4] == [count + 1 - one * FORGOTTEN_AT_ONCE for one in (1, 2, 3)] + [0]
