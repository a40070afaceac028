"""Estimates of a listing's size, with upstream's 14 cases of TopicListSizeResultCacheTest."""

import asyncio

import pytest

from limiter.memory.size_estimate import (
    FIRST_ESTIMATE_BYTES,
    PROPOSAL_ESTIMATE_BYTES,
    ResultHolder,
    SizeEstimate,
    SizeGuess,
    TopicListSizeResultCache,
    charged_bytes,
    estimate_topic_list_bytes,
)
from tests.support.clocks.settle import settle, started


@pytest.fixture
def holder() -> ResultHolder:
    return ResultHolder()


def test_a_listing_is_estimated_as_its_utf8_bytes_plus_32_per_name() -> None:
    assert estimate_topic_list_bytes([]) == 0
    assert estimate_topic_list_bytes(["persistent://t/ns/a", "persistent://t/ns/tópico"]) == 108


@pytest.mark.parametrize(
    ("policy", "expected"),
    [(SizeEstimate.LAST, 108), (SizeEstimate.EXACT, 108), (SizeEstimate.PROPOSAL, 44)],
)
def test_the_proposals_estimate_charges_the_bytes_of_the_names_only(policy, expected) -> None:
    names = ["persistent://t/ns/a", "persistent://t/ns/tópico"]
    assert charged_bytes(policy, estimate_topic_list_bytes(names), len(names)) == expected


def test_the_first_estimates_match_upstream_and_the_proposal() -> None:
    assert (FIRST_ESTIMATE_BYTES, PROPOSAL_ESTIMATE_BYTES) == (10_240, 1_024)
    assert SizeEstimate("last") is SizeEstimate.LAST


def test_equal_keys_have_the_same_holder() -> None:
    """Upstream: TopicListSizeResultCacheTest cases 1 and 11 (equal keys)."""
    cache = TopicListSizeResultCache()
    assert cache.holder(("t/ns", "ALL")) is cache.holder(("t/ns", "ALL"))


def test_different_namespaces_have_different_holders() -> None:
    """Upstream: TopicListSizeResultCacheTest cases 2 and 12 (unequal keys)."""
    cache = TopicListSizeResultCache()
    assert cache.holder(("t/ns", "ALL")) is not cache.holder(("t/other", "ALL"))


def test_different_modes_have_different_holders() -> None:
    """Upstream: TopicListSizeResultCacheTest cases 3 and 13 (unequal keys)."""
    cache = TopicListSizeResultCache()
    assert cache.holder(("t/ns", "ALL")) is not cache.holder(("t/ns", "PERSISTENT"))


async def test_the_first_caller_receives_the_first_estimate_immediately(
    holder: ResultHolder,
) -> None:
    """Upstream: TopicListSizeResultCacheTest case 4."""
    assert await holder.size() == 10_240
    assert holder.last_size_bytes is None


@pytest.mark.parametrize(
    ("callers", "actual"),
    [
        pytest.param(5, 20_480, id="case 5"),
        pytest.param(2, 15_000, id="case 7"),
        pytest.param(20, 30_000, id="case 14"),
    ],
)
async def test_later_callers_wait_for_the_measurement_of_the_first(
    callers: int, actual: int
) -> None:
    """Upstream: TopicListSizeResultCacheTest cases 5, 7 and 14 (there with 20 threads)."""
    holder = ResultHolder()
    asking = [await started(holder.size()) for _ in range(callers)]
    assert [task.done() for task in asking] == [True] + [False] * (callers - 1)
    holder.update_size(actual)
    assert await asyncio.gather(*asking) == [10_240] + [actual] * (callers - 1)


async def test_later_callers_receive_the_last_actual_size(holder: ResultHolder) -> None:
    """Upstream: TopicListSizeResultCacheTest cases 6 and 10 (the last size wins)."""
    assert await holder.size() == 10_240
    for actual in (20_480, 15_000, 25_000):
        holder.update_size(actual)
        assert await holder.size() == holder.last_size_bytes == actual


async def test_a_failed_first_measurement_resumes_waiting_callers_with_the_first_estimate() -> None:
    """Upstream: TopicListSizeResultCacheTest case 8."""
    holder = ResultHolder()
    await holder.size()
    waiting = await started(holder.size())
    holder.reset_if_initializing()
    assert await waiting == 10_240
    assert await holder.size() == 10_240


async def test_a_reset_after_a_measurement_changes_nothing(holder: ResultHolder) -> None:
    """Upstream: TopicListSizeResultCacheTest case 9."""
    await holder.size()
    holder.update_size(20_000)
    holder.reset_if_initializing()
    assert await holder.size() == 20_000


async def test_a_cancelled_caller_does_not_affect_further_waiting_callers(
    holder: ResultHolder,
) -> None:
    await holder.size()
    leaves, stays = await started(holder.size()), await started(holder.size())
    leaves.cancel()
    await settle()
    holder.update_size(20_000)
    assert leaves.cancelled()
    assert await stays == 20_000


def test_the_least_recently_used_key_is_forgotten() -> None:
    cache = TopicListSizeResultCache(max_keys=2)
    used, unused = cache.holder("used"), cache.holder("unused")
    assert cache.holder("used") is used
    cache.holder("new")
    assert len(cache) == 2
    assert cache.holder("used") is used
    assert cache.holder("unused") is not unused


async def test_a_forgotten_size_is_measured_anew(holder: ResultHolder) -> None:
    holder.update_size(20_000)
    holder.forget()
    assert holder.last_size_bytes is None
    assert await holder.size() == 10_240
    assert holder.measurement is not None


# -- failures that end the first measurement -----------------------------------------------------


@pytest.mark.parametrize("anyone_resets", [True, False])
async def test_a_failed_measuring_request_resumes_waiting_requests_with_the_first_estimate(
    anyone_resets: bool,
) -> None:
    holder = ResultHolder()
    first = SizeGuess(holder, anyone_resets=anyone_resets)
    await first.size()
    waiting = await started(SizeGuess(holder, anyone_resets=anyone_resets).size())
    first.failed()
    assert await waiting == 10_240


@pytest.mark.parametrize("anyone_resets", [True, False])
async def test_a_request_cancelled_before_its_estimate_does_not_reset_the_measurement(
    holder: ResultHolder, anyone_resets: bool
) -> None:
    await SizeGuess(holder, anyone_resets=anyone_resets).size()
    leaves = SizeGuess(holder, anyone_resets=anyone_resets)
    leaving = await started(leaves.size())
    stays = await started(SizeGuess(holder, anyone_resets=anyone_resets).size())
    leaving.cancel()
    await settle()
    leaves.failed()
    await settle()
    assert not stays.done()
    holder.update_size(20_000)
    assert await stays == 20_000


@pytest.mark.parametrize(
    ("anyone_resets", "estimate"), [(True, 10_240), (False, 20_000)], ids=["as shipped", "ours"]
)
async def test_a_failure_resets_the_measurement_of_a_different_request_only_in_profile_pulsar(
    holder: ResultHolder, anyone_resets: bool, estimate: int
) -> None:
    """Upstream: every failing caller calls resetIfInitializing."""
    # A request with an estimate from a failed measurement, and a new measurement
    failed = SizeGuess(holder, anyone_resets=anyone_resets)
    await failed.size()
    waits = SizeGuess(holder, anyone_resets=anyone_resets)
    waiting = await started(waits.size())
    failed.failed()
    await SizeGuess(holder, anyone_resets=anyone_resets).size()
    assert await waiting == 10_240
    behind = await started(SizeGuess(holder, anyone_resets=anyone_resets).size())
    waits.failed()
    failed.failed()
    await settle()
    holder.update_size(20_000)
    assert await behind == estimate


async def test_a_failure_after_the_actual_size_was_reported_resets_nothing(
    holder: ResultHolder,
) -> None:
    guess = SizeGuess(holder, anyone_resets=True)
    await guess.size()
    guess.actual(20_000)
    guess.failed()
    assert await holder.size() == 20_000
