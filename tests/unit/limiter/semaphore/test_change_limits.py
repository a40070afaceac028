"""Limits changing at run time, up and down, without losing a waiter."""

import pytest

from limiter.admission.caps import AdmissionCaps
from limiter.admission.rules import AdmissionPolicy, AdmissionRules
from limiter.errors import (
    PermitAcquireQueueFullError,
    PermitAcquireTimeoutError,
    PermitTooLargeError,
)
from limiter.permits.permit import UNBOUNDED_PERMITS, AcquireOutcome
from limiter.semaphore.async_semaphore import AsyncSemaphore
from tests.support.clocks.manual_clock import ManualClock
from tests.support.limiters import FairLimiter, fair

POLICIES = list(AdmissionPolicy)


def semaphore_of(policy: AdmissionPolicy, limit: int, queue: int = 10) -> AsyncSemaphore:
    return AsyncSemaphore(limit, queue, 25.0, ManualClock(), None, AdmissionRules(policy))


@pytest.mark.parametrize("policy", POLICIES)
async def test_a_raised_limit_serves_waiters_immediately(policy: AdmissionPolicy) -> None:
    semaphore = semaphore_of(policy, 10)
    await semaphore.acquire(10, owner="a")
    first, second = semaphore.request(5, owner="b"), semaphore.request(5, owner="c")
    semaphore.change_limits(max_permits=15)
    assert first.result().size == 5
    assert not second.done


@pytest.mark.parametrize("policy", POLICIES)
async def test_a_lowered_limit_revokes_no_permits_and_grants_none(policy: AdmissionPolicy) -> None:
    semaphore = semaphore_of(policy, 10)
    held = await semaphore.acquire(8, owner="a")
    semaphore.change_limits(max_permits=5)
    waiting = semaphore.request(1, owner="b")
    assert (held.size, semaphore.available_permits) == (8, -3)
    assert not waiting.done
    semaphore.release(held)
    assert waiting.done


@pytest.mark.parametrize("policy", POLICIES)
async def test_a_waiter_larger_than_a_lowered_limit_is_refused_with_the_figures(policy) -> None:
    semaphore = semaphore_of(policy, 10)
    await semaphore.acquire(10, owner="a")
    large, small = semaphore.request(8, owner="b"), semaphore.request(5, owner="c")
    semaphore.change_limits(max_permits=5)
    assert isinstance(large.error, PermitTooLargeError)
    assert (large.error.requested, large.error.limit) == (8, 5)
    assert not small.done


@pytest.mark.parametrize("policy", POLICIES)
async def test_shrinking_a_permit_still_above_a_lowered_limit_is_granted(policy) -> None:
    semaphore = semaphore_of(policy, 10)
    held = await semaphore.acquire(10, owner="a")
    semaphore.change_limits(max_permits=5)
    shrunk = await semaphore.update(held, 7)
    assert (shrunk.size, semaphore.acquired_permits) == (7, 7)


@pytest.mark.parametrize("policy", POLICIES)
async def test_growth_beyond_a_lowered_limit_is_refused(policy: AdmissionPolicy) -> None:
    semaphore = semaphore_of(policy, 10)
    held = await semaphore.acquire(7, owner="a")
    semaphore.change_limits(max_permits=5)
    with pytest.raises(PermitTooLargeError):
        await semaphore.update(held, 8)
    assert held.size == 7


@pytest.mark.parametrize("policy", POLICIES)
async def test_a_changed_queue_size_applies_to_new_requests_only(policy: AdmissionPolicy) -> None:
    semaphore = semaphore_of(policy, 10, queue=2)
    await semaphore.acquire(10, owner="a")
    waiting = [semaphore.request(1, owner="b"), semaphore.request(1, owner="c")]
    semaphore.change_limits(max_queue_size=1)
    assert not any(waiter.done for waiter in waiting)
    with pytest.raises(PermitAcquireQueueFullError):
        semaphore.request(1, owner="d")
    semaphore.change_limits(max_queue_size=3)
    assert not semaphore.request(1, owner="d").done


@pytest.mark.parametrize("policy", POLICIES)
async def test_a_shorter_timeout_applies_to_new_requests_only(policy: AdmissionPolicy) -> None:
    clock = ManualClock()
    semaphore = AsyncSemaphore(10, 10, 25.0, clock, None, AdmissionRules(policy))
    await semaphore.acquire(10, owner="a")
    early = semaphore.request(1, owner="b")
    semaphore.change_limits(timeout_seconds=5.0)
    late = semaphore.request(1, owner="c")
    clock.advance(5.0)
    assert isinstance(late.error, PermitAcquireTimeoutError)
    assert not early.done
    clock.advance(20.0)
    assert isinstance(early.error, PermitAcquireTimeoutError)


@pytest.mark.parametrize("policy", POLICIES)
async def test_a_change_without_values_keeps_all_limits(policy: AdmissionPolicy) -> None:
    semaphore = semaphore_of(policy, 10, queue=3)
    semaphore.change_limits()
    statistics = semaphore.statistics()
    assert (statistics.max_permits, statistics.max_queue_size) == (10, 3)
    assert semaphore.timeout_seconds == 25.0


# -- no limit -----------------------------------------------------------------------------------


async def test_lifting_the_limit_serves_waiters_for_a_share_or_a_cap_too() -> None:
    semaphore = fair(100, caps=AdmissionCaps(per_namespace=60))
    await semaphore.acquire(60, owner="a", namespace="t/x")
    over_share = semaphore.request(30, owner="a", namespace="t/y")
    capped = semaphore.request(30, owner="b", namespace="t/x")
    semaphore.change_limits(max_permits=0)
    assert over_share.done
    assert capped.done
    assert semaphore.queue_size == 0
    assert semaphore.available_permits == UNBOUNDED_PERMITS


@pytest.mark.parametrize("policy", POLICIES)
async def test_a_permit_granted_without_a_limit_is_never_counted_later(
    policy: AdmissionPolicy,
) -> None:
    semaphore = semaphore_of(policy, 0)
    uncounted = await semaphore.acquire(1_000, owner="a")
    semaphore.change_limits(max_permits=10)
    assert (semaphore.acquired_permits, semaphore.available_permits) == (0, 10)
    semaphore.release(uncounted)
    assert semaphore.acquired_permits == 0


@pytest.mark.parametrize("policy", POLICIES)
async def test_an_update_of_a_permit_granted_without_a_limit_is_counted_and_waits(policy) -> None:
    semaphore = semaphore_of(policy, 0)
    uncounted = await semaphore.acquire(8, owner="a")
    semaphore.change_limits(max_permits=10)
    blocker = await semaphore.acquire(5, owner="b")
    update = semaphore.request_update(uncounted, 8)
    assert not update.done
    semaphore.release(blocker)
    assert (update.result().size, semaphore.acquired_permits) == (8, 8)
    assert semaphore.owners.pinned_by("a") == 8


@pytest.mark.parametrize("policy", POLICIES)
async def test_permits_held_when_the_limit_is_lifted_are_subtracted_on_release(policy) -> None:
    semaphore = semaphore_of(policy, 10)
    permits = [await semaphore.acquire(5, owner="a"), await semaphore.acquire(5, owner="b")]
    semaphore.change_limits(max_permits=0)
    semaphore.release(permits[0])
    updated = await semaphore.update(permits[1], 500)
    semaphore.change_limits(max_permits=10)
    assert semaphore.acquired_permits == 0
    assert updated.size == 500


# -- shares and overdrafts ----------------------------------------------------------------------


async def test_a_raised_limit_enlarges_shares() -> None:
    semaphore = fair(100)
    await semaphore.acquire(60, owner="a")
    more = semaphore.request(30, owner="a")
    assert not more.done
    semaphore.change_limits(max_permits=200)
    assert more.done


async def test_a_raised_limit_ends_an_overdraft() -> None:
    limiter = FairLimiter(100)
    semaphore = limiter.semaphore
    first, second = await semaphore.acquire(50, owner="a"), await semaphore.acquire(50, owner="b")
    growths = [semaphore.request_update(first, 55), semaphore.request_update(second, 55)]
    assert growths[0].done
    semaphore.change_limits(max_permits=110)
    semaphore.change_limits(max_permits=100)
    # The excess was within the limit in the meantime
    assert growths[1].done
    assert semaphore.statistics().overdraft_permits == 0
    assert limiter.outcomes.count(AcquireOutcome.OVERDRAFT) == 1


async def test_without_a_limit_no_overdraft_is_reported() -> None:
    semaphore = fair(100)
    first, second = await semaphore.acquire(50, owner="a"), await semaphore.acquire(50, owner="b")
    growths = [semaphore.request_update(first, 55), semaphore.request_update(second, 55)]
    assert growths[0].done
    semaphore.change_limits(max_permits=0)
    assert semaphore.acquired_permits == 110
    assert semaphore.statistics().overdraft_permits == 0
