"""Listings in any order: waiters for direct memory hold no heap."""

from random import Random

import pytest

from tests.properties.broker.listings_history import ListingsHistory

SEEDS = 15
STEPS = 250


@pytest.mark.parametrize("private", [False, True])
async def test_in_profile_floodgate_no_listing_holds_heap_while_waiting_for_direct_memory(
    private: bool,
) -> None:
    answered = waited = 0
    for seed in range(SEEDS):
        history = await _lived(seed, as_shipped=False, private=private)
        assert history.waited_with_heap == 0
        answered += history.answered
        waited += history.waited
    # The case under test did happen
    assert answered > 10 * SEEDS
    assert waited > SEEDS


async def test_in_profile_pulsar_listings_waiting_for_direct_memory_keep_their_heap() -> None:
    histories = [await _lived(seed, as_shipped=True, private=True) for seed in range(SEEDS)]
    assert sum(history.waited_with_heap for history in histories) > SEEDS


async def _lived(seed: int, *, as_shipped: bool, private: bool) -> ListingsHistory:
    history = ListingsHistory(Random(seed), as_shipped=as_shipped, private=private)
    await history.begin()
    for _ in range(STEPS):
        await history.step()
    await history.end()
    return history
