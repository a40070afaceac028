"""Upstream's 30 cases of AsyncSemaphoreImplTest, numbered in docstrings in upstream's order.

Under both policies where the policies agree: each request then has a separate owner, because policy
fair has a share per owner. The remaining cases are for fifo.
"""

import asyncio

import pytest

from limiter.admission.rules import AdmissionPolicy, AdmissionRules
from limiter.clock import clock_sleep
from limiter.errors import (
    PermitAcquireCancelledError,
    PermitAcquireClosedError,
    PermitAcquireQueueFullError,
    PermitAcquireTimeoutError,
    PermitTooLargeError,
)
from limiter.permits.permit import UNBOUNDED_PERMITS
from limiter.semaphore.async_semaphore import AsyncSemaphore
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle, started

FIFO, FAIR = AdmissionRules(AdmissionPolicy.FIFO), AdmissionRules(AdmissionPolicy.FAIR)
BOTH = pytest.mark.parametrize("rules", [FIFO, FAIR], ids=["fifo", "fair"])


def bounded(
    limit: int, queue: int = 10, timeout_seconds: float = 5.0, rules: AdmissionRules = FIFO
) -> tuple[AsyncSemaphore, ManualClock]:
    clock = ManualClock()
    return AsyncSemaphore(limit, queue, timeout_seconds, clock, rules=rules), clock


def unbounded(rules: AdmissionRules) -> AsyncSemaphore:
    return bounded(0, 10, 5.0, rules)[0]


@BOTH
@pytest.mark.parametrize(("limit", "size"), [(1, 1), (10, 5)])
async def test_a_request_that_fits_is_granted(limit: int, size: int, rules: AdmissionRules) -> None:
    """Upstream: AsyncSemaphoreImplTest cases 1 and 2."""
    semaphore, _ = bounded(limit, rules=rules)
    permit = await semaphore.acquire(size)
    assert permit.size == size
    assert semaphore.available_permits == limit - size


@BOTH
async def test_a_release_serves_a_waiter(rules: AdmissionRules) -> None:
    """Upstream: AsyncSemaphoreImplTest case 3."""
    semaphore, _ = bounded(5, rules=rules)
    holder = await semaphore.acquire(5, owner="holder")
    waiting = await started(semaphore.acquire(3, owner="waiting"))
    assert not waiting.done()
    semaphore.release(holder)
    assert (await waiting).size == 3
    assert semaphore.acquired_permits == 3


@BOTH
async def test_a_full_queue_refuses_a_request_immediately(rules: AdmissionRules) -> None:
    """Upstream: AsyncSemaphoreImplTest case 4."""
    semaphore, _ = bounded(1, 2, rules=rules)
    await semaphore.acquire(1, owner="holder")
    waiting = [semaphore.request(1, owner=number) for number in range(2)]
    with pytest.raises(PermitAcquireQueueFullError, match=r"^Semaphore queue is full$") as caught:
        semaphore.request(1, owner="fourth")
    assert caught.value.queue_size == semaphore.queue_size == 2
    assert not any(waiter.done for waiter in waiting)


@BOTH
async def test_a_waiter_times_out(rules: AdmissionRules) -> None:
    """Upstream: AsyncSemaphoreImplTest case 5."""
    semaphore, clock = bounded(1, 10, 0.1, rules)
    await semaphore.acquire(1, owner="holder")
    waiting = await started(semaphore.acquire(1, owner="waiting"))
    clock.advance(0.2)
    with pytest.raises(
        PermitAcquireTimeoutError, match=r"^Permit acquisition timed out$"
    ) as caught:
        await waiting
    assert caught.value.waited_seconds == pytest.approx(0.1)


@BOTH
async def test_a_waiter_that_is_no_longer_wanted_is_cancelled_at_its_turn(rules) -> None:
    """Upstream: AsyncSemaphoreImplTest case 6; here the request ends in the turn of the release."""
    semaphore, _ = bounded(1, rules=rules)
    holder = await semaphore.acquire(1, owner="holder")
    unwanted: list[bool] = []
    waiting = semaphore.request(1, lambda: bool(unwanted), owner="waiting")
    unwanted.append(True)
    semaphore.release(holder)
    with pytest.raises(PermitAcquireCancelledError, match=r"^Permit acquisition was cancelled$"):
        waiting.result()
    assert semaphore.acquired_permits == 0


@BOTH
async def test_a_negative_request_is_rejected_immediately(rules: AdmissionRules) -> None:
    """Upstream: AsyncSemaphoreImplTest cases 7 and 12."""
    semaphore, _ = bounded(10, rules=rules)
    permit = await semaphore.acquire(5)
    sentence = "^Invalid negative permits value: -1$"
    with pytest.raises(ValueError, match=sentence):
        semaphore.request(-1)
    with pytest.raises(ValueError, match=sentence):
        semaphore.request_update(permit, -1)
    assert permit.size == semaphore.acquired_permits == 5


@BOTH
async def test_a_request_above_the_limit_is_rejected_immediately(rules: AdmissionRules) -> None:
    """Upstream: AsyncSemaphoreImplTest cases 8 and 13."""
    semaphore, _ = bounded(10, rules=rules)
    permit = await semaphore.acquire(5)
    sentence = "^Requested permits=11 is larger than maxPermits=10$"
    with pytest.raises(PermitTooLargeError, match=sentence) as caught:
        semaphore.request(11)
    with pytest.raises(PermitTooLargeError, match=sentence):
        semaphore.request_update(permit, 11)
    assert (caught.value.requested, caught.value.limit) == (11, 10)
    assert permit.size == semaphore.acquired_permits == 5


@BOTH
async def test_close_refuses_waiters_and_later_requests(rules: AdmissionRules) -> None:
    """Upstream: AsyncSemaphoreImplTest case 9."""
    semaphore, _ = bounded(5, rules=rules)
    holder = await semaphore.acquire(3, owner="holder")
    waiting = await started(semaphore.acquire(5, owner="waiting"))
    semaphore.close()
    with pytest.raises(PermitAcquireClosedError, match=r"^Semaphore is closed$"):
        await waiting
    with pytest.raises(PermitAcquireClosedError):
        await semaphore.acquire(1)
    semaphore.release(holder)
    assert semaphore.acquired_permits == 0


@BOTH
async def test_growth_is_charged_and_delays_later_requests(rules: AdmissionRules) -> None:
    """Upstream: AsyncSemaphoreImplTest case 10."""
    semaphore, clock = bounded(10, rules=rules)
    permit = await semaphore.acquire(5, owner="grows")
    grown = await semaphore.update(permit, 8)
    fits = await semaphore.acquire(2, owner="fits")
    waiting = await started(semaphore.acquire(1, owner="waits"))
    clock.advance(1.0)
    await settle()
    assert (grown.size, permit.size, fits.size) == (8, 0, 2)
    assert not waiting.done()
    semaphore.release(grown)
    assert (await waiting).size == 1


@BOTH
async def test_shrinking_is_granted_immediately(rules: AdmissionRules) -> None:
    """Upstream: AsyncSemaphoreImplTest case 11."""
    semaphore, _ = bounded(10, rules=rules)
    permit = await semaphore.acquire(8)
    shrunk = semaphore.request_update(permit, 5).result()
    assert (shrunk.size, permit.size, semaphore.acquired_permits) == (5, 0, 5)


@BOTH
async def test_an_update_to_zero_releases_all_permits(rules: AdmissionRules) -> None:
    """Upstream: AsyncSemaphoreImplTest case 14."""
    semaphore, _ = bounded(10, rules=rules)
    permit = await semaphore.acquire(5)
    nothing = await semaphore.update(permit, 0)
    assert nothing.size == 0
    assert (await semaphore.acquire(10)).size == 10


@BOTH
async def test_many_tasks_take_turns_within_the_limit(rules: AdmissionRules) -> None:
    """Upstream: AsyncSemaphoreImplTest case 15."""
    semaphore, clock = bounded(10, 100, 5.0, rules)
    most = 0

    async def rounds(owner: int) -> None:
        nonlocal most
        for _ in range(10):
            permit = await semaphore.acquire(1, owner=owner)
            most = max(most, semaphore.acquired_permits)
            await clock_sleep(clock, 0.01)
            semaphore.release(permit)

    # 200 holds of 10 ms, ten at a time
    tasks = [await started(rounds(owner)) for owner in range(20)]
    for _ in range(20):
        clock.advance(0.01)
        await settle()
    assert all(task.done() for task in tasks)
    await asyncio.gather(*tasks)
    assert most == semaphore.statistics().high_water_permits == 10
    assert semaphore.acquired_permits == 0


@BOTH
async def test_after_a_timeout_later_waiters_are_served(rules: AdmissionRules) -> None:
    """Upstream: AsyncSemaphoreImplTest case 16."""
    semaphore, clock = bounded(5, 10, 0.25, rules)
    holder = await semaphore.acquire(5, owner="holder")
    large = await started(semaphore.acquire(5, owner="large"))
    clock.advance(0.25)
    small = await started(semaphore.acquire(3, owner="small"))
    semaphore.release(holder)
    with pytest.raises(PermitAcquireTimeoutError):
        await large
    assert (await small).size == 3


async def test_under_policy_fifo_a_small_request_never_overtakes_a_large_request() -> None:
    """Upstream: AsyncSemaphoreImplTest case 17; under fair a small request may, for a while."""
    semaphore, _ = bounded(10)
    holders = [await semaphore.acquire(2) for _ in range(5)]
    waiting = [semaphore.request(size) for size in (3, 4, 2)]
    done = []
    for holder in holders:
        semaphore.release(holder)
        done.append([waiter.size for waiter in waiting if waiter.done])
    assert done == [[], [3], [3], [3, 4], [3, 4, 2]]


@BOTH
@pytest.mark.parametrize("sizes", [[1], [100], [10] * 100], ids=["1", "100", "100 of 10"])
async def test_an_unbounded_semaphore_grants_every_request_immediately(
    sizes: list[int], rules: AdmissionRules
) -> None:
    """Upstream: AsyncSemaphoreImplTest cases 18, 19 and 20."""
    semaphore = unbounded(rules)
    waiters = [semaphore.request(size) for size in sizes]
    assert [waiter.result().size for waiter in waiters] == sizes


@BOTH
async def test_an_unbounded_semaphore_is_unaffected_by_a_release(rules: AdmissionRules) -> None:
    """Upstream: AsyncSemaphoreImplTest case 21."""
    semaphore = unbounded(rules)
    permit = await semaphore.acquire(100)
    semaphore.release(permit)
    assert semaphore.available_permits == UNBOUNDED_PERMITS
    assert semaphore.acquired_permits == 0
    assert semaphore.request(100).result().size == 100


@BOTH
async def test_an_unbounded_semaphore_counts_no_permits(rules: AdmissionRules) -> None:
    """Upstream: AsyncSemaphoreImplTest cases 22, 23 and 24."""
    semaphore = unbounded(rules)
    for size in [100] + [10] * 10:
        await semaphore.acquire(size)
    assert semaphore.available_permits == UNBOUNDED_PERMITS == 2**63 - 1
    assert semaphore.acquired_permits == 0
    assert semaphore.queue_size == 0


@BOTH
@pytest.mark.parametrize(("before", "after"), [(10, 50), (100, 0)])
async def test_an_unbounded_semaphore_grants_updates_immediately(before, after, rules) -> None:
    """Upstream: AsyncSemaphoreImplTest cases 25 and 26."""
    semaphore = unbounded(rules)
    permit = await semaphore.acquire(before)
    updated = semaphore.request_update(permit, after).result()
    assert updated.size == after


@BOTH
async def test_an_unbounded_semaphore_does_not_time_out_granted_permits(
    rules: AdmissionRules,
) -> None:
    """Upstream: AsyncSemaphoreImplTest case 27."""
    semaphore, clock = bounded(0, 10, 0.1, rules)
    waiter = semaphore.request(1000)
    clock.advance(0.15)
    assert waiter.result().size == 1000


@BOTH
async def test_an_unbounded_semaphore_grants_a_request_without_a_cancellation_check(
    rules: AdmissionRules,
) -> None:
    """Upstream: AsyncSemaphoreImplTest case 28."""
    semaphore = unbounded(rules)
    waiter = semaphore.request(1, lambda: True)
    assert waiter.result().size == 1


@BOTH
async def test_a_cancelled_update_leaves_the_old_permit_unchanged(rules: AdmissionRules) -> None:
    """Upstream: AsyncSemaphoreImplTest case 29."""
    semaphore, _ = bounded(10, rules=rules)
    permit = await semaphore.acquire(5)
    with pytest.raises(PermitAcquireCancelledError):
        await semaphore.update(permit, 10, lambda: True)
    assert (permit.size, semaphore.acquired_permits) == (5, 5)
    updated = await semaphore.update(permit, 10, lambda: False)
    assert (updated.size, semaphore.acquired_permits) == (10, 10)
    semaphore.release(permit)
    assert semaphore.acquired_permits == 10
    semaphore.release(updated)
    assert semaphore.acquired_permits == 0


async def test_cancelling_the_head_of_the_queue_serves_later_waiters() -> None:
    """Upstream: AsyncSemaphoreImplTest case 30; upstream takes half the timeout, we take no time.

    Under fair the follower goes first.
    """
    semaphore, _ = bounded(10, 10, 0.2)
    await semaphore.acquire(5)
    head = await started(semaphore.acquire(10))
    follower = await started(semaphore.acquire(5))
    assert not follower.done()
    head.cancel()
    await settle()
    assert head.cancelled()
    assert (await follower).size == 5
    assert semaphore.acquired_permits == 10
