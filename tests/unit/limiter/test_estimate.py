"""Estimates of a listing's size; "case" and a number is upstream's TopicListSizeResultCacheTest."""

from __future__ import annotations

import asyncio

import pytest

from limiter.estimate import (
    FIRST_ESTIMATE_BYTES,
    PROPOSAL_ESTIMATE_BYTES,
    ResultHolder,
    SizeEstimate,
    TopicListSizeResultCache,
    estimate_topic_list_bytes,
)
from tests.support.settle import settle, started


def test_a_listing_costs_its_utf8_bytes_and_32_a_name() -> None:
    assert estimate_topic_list_bytes([]) == 0
    assert estimate_topic_list_bytes(["persistent://t/ns/a", "persistent://t/ns/tópico"]) == 108


def test_the_first_guesses_are_upstreams() -> None:
    assert (FIRST_ESTIMATE_BYTES, PROPOSAL_ESTIMATE_BYTES) == (10_240, 1_024)
    assert SizeEstimate("last") is SizeEstimate.LAST


def test_the_same_key_has_the_same_holder() -> None:
    """Cases 1 and 11."""
    cache = TopicListSizeResultCache()
    assert cache.holder(("t/ns", "ALL")) is cache.holder(("t/ns", "ALL"))


@pytest.mark.parametrize("other", [("t/other", "ALL"), ("t/ns", "PERSISTENT")])
def test_another_namespace_or_mode_has_another_holder(other: tuple[str, str]) -> None:
    """Cases 2, 3, 12 and 13."""
    cache = TopicListSizeResultCache()
    assert cache.holder(("t/ns", "ALL")) is not cache.holder(other)


async def test_the_first_to_ask_gets_the_first_guess_at_once() -> None:
    """Case 4."""
    holder = ResultHolder()
    assert await holder.size() == 10_240
    assert holder.last_size_bytes is None


@pytest.mark.parametrize(("callers", "actual"), [(5, 20_480), (2, 15_000), (20, 30_000)])
async def test_the_others_wait_for_the_firsts_result(callers: int, actual: int) -> None:
    """Cases 5, 7 and 14."""
    # Given
    holder = ResultHolder()
    asking = [await started(holder.size()) for _ in range(callers)]
    assert [task.done() for task in asking] == [True] + [False] * (callers - 1)
    # When
    holder.update_size(actual)
    # Then
    assert await asyncio.gather(*asking) == [10_240] + [actual] * (callers - 1)


async def test_later_callers_get_the_last_actual_size() -> None:
    """Cases 6 and 10."""
    # Given
    holder = ResultHolder()
    await holder.size()
    # When, Then
    for actual in (20_480, 15_000, 25_000):
        holder.update_size(actual)
        assert await holder.size() == holder.last_size_bytes == actual


async def test_a_failed_first_measurement_lets_the_others_go_on_with_the_guess() -> None:
    """Case 8."""
    # Given
    holder = ResultHolder()
    await holder.size()
    waiting = await started(holder.size())
    # When
    holder.reset_if_initializing()
    # Then
    assert await waiting == 10_240
    assert await holder.size() == 10_240


async def test_a_reset_after_a_result_changes_nothing() -> None:
    """Case 9."""
    # Given
    holder = ResultHolder()
    await holder.size()
    holder.update_size(20_000)
    # When
    holder.reset_if_initializing()
    # Then
    assert await holder.size() == 20_000


async def test_a_caller_that_leaves_takes_nothing_from_the_others() -> None:
    # Given
    holder = ResultHolder()
    await holder.size()
    leaves, stays = await started(holder.size()), await started(holder.size())
    # When
    leaves.cancel()
    await settle()
    holder.update_size(20_000)
    # Then
    assert leaves.cancelled()
    assert await stays == 20_000


def test_the_key_unused_for_longest_is_forgotten() -> None:
    # Given
    cache = TopicListSizeResultCache(max_keys=2)
    used, unused = cache.holder("used"), cache.holder("unused")
    assert cache.holder("used") is used
    # When
    cache.holder("new")
    # Then
    assert len(cache) == 2
    assert cache.holder("used") is used
    assert cache.holder("unused") is not unused
