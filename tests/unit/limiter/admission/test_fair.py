"""Policy fair: growth first, then accounts without holds, shares, turns by bytes, and no stall."""

import asyncio

import pytest

from limiter.admission.caps import AdmissionCaps
from limiter.errors import (
    LimitScope,
    PermitAcquireCancelledError,
    PermitAcquireClosedError,
    PermitAcquireQueueFullError,
    PermitAcquireStalledError,
    PermitTooLargeError,
)
from limiter.permits.account import Waiter
from limiter.permits.permit import AcquireOutcome, Contention
from limiter.semaphore.async_semaphore import AsyncSemaphore
from tests.support.limiters import FairLimiter, fair


@pytest.fixture
def semaphore() -> AsyncSemaphore:
    return fair(100)


# -- growth -----------------------------------------------------------------------------------


async def test_growth_is_served_before_an_earlier_new_request(semaphore: AsyncSemaphore) -> None:
    small = await semaphore.acquire(5, owner="a")
    grows = await semaphore.acquire(50, owner="b")
    await semaphore.acquire(45, owner="c")
    new = semaphore.request(5, owner="d")
    growth = semaphore.request_update(grows, 55)
    semaphore.release(small)
    assert growth.result().size == 55
    assert not new.done


async def test_a_new_request_that_fits_waits_while_growth_waits(semaphore: AsyncSemaphore) -> None:
    grows = await semaphore.acquire(40, owner="a")
    await semaphore.acquire(40, owner="b")
    growth = semaphore.request_update(grows, 70)
    new = semaphore.request(5, owner="c")
    assert not new.done
    semaphore.abandon(growth)
    assert new.result().size == 5


async def test_a_smaller_growth_may_overtake_an_older_growth(semaphore: AsyncSemaphore) -> None:
    first, second = await semaphore.acquire(40, owner="a"), await semaphore.acquire(40, owner="b")
    large = semaphore.request_update(first, 70)
    small = semaphore.request_update(second, 50)
    assert small.result().size == 50
    assert not large.done


async def test_beyond_its_share_an_account_grows_only_a_single_permit_at_a_time() -> None:
    semaphore = fair(100)
    first, second = await semaphore.acquire(30, owner="a"), await semaphore.acquire(20, owner="a")
    grown = await semaphore.update(first, 45)
    other = semaphore.request_update(second, 30)
    assert not other.done
    assert semaphore.available_permits == 35
    semaphore.release(grown)
    assert other.result().size == 30


async def test_after_the_favoured_permit_is_released_another_may_grow_beyond_the_share() -> None:
    # Alone, a share is 50
    semaphore = fair(100)
    first, second = await semaphore.acquire(10, owner="a"), await semaphore.acquire(40, owner="a")
    favoured = await semaphore.update(first, 20)
    semaphore.release(favoured)
    other = semaphore.request_update(second, 55)
    assert other.done


# -- accounts without holds, and shares ---------------------------------------------------------


async def test_an_account_without_permits_is_served_before_an_earlier_request_of_a_holder() -> None:
    semaphore = fair(100)
    blocker = await semaphore.acquire(90, owner="blocker")
    await semaphore.acquire(10, owner="holds")
    more = semaphore.request(10, owner="holds")
    first = semaphore.request(10, owner="hungry")
    await semaphore.update(blocker, 80)
    assert first.done
    assert not more.done


async def test_no_holder_is_granted_more_while_a_hungry_account_waits_for_permits() -> None:
    semaphore = fair(100)
    await semaphore.acquire(60, owner="blocker")
    await semaphore.acquire(5, owner="holds")
    hungry = semaphore.request(50, owner="hungry")
    more = semaphore.request(5, owner="holds")
    # 35 are free, and 5 more would be within the share
    assert not hungry.done
    assert not more.done


async def test_nine_thousand_queued_requests_do_not_delay_another_accounts_first_request() -> None:
    semaphore = fair(10_000, queue=0)
    blocker = await semaphore.acquire(10_000, owner="blocker")
    flood = [semaphore.request(1, owner="flood") for _ in range(9_000)]
    other = semaphore.request(1, owner="other")
    await semaphore.update(blocker, 9_998)
    assert other.done
    assert sum(waiter.done for waiter in flood) == 1


async def test_the_first_request_of_an_account_may_take_the_whole_limit() -> None:
    semaphore = fair(100)
    permit = await semaphore.acquire(100, owner="a")
    assert permit.size == 100


async def test_beyond_its_first_request_an_account_is_granted_up_to_its_share(
    semaphore: AsyncSemaphore,
) -> None:
    other = await semaphore.acquire(50, owner="other")
    await semaphore.acquire(10, owner="a")
    within = semaphore.request(23, owner="a")
    beyond = semaphore.request(1, owner="a")
    assert within.done
    assert not beyond.done
    semaphore.release(other)
    assert beyond.done


async def test_beyond_its_share_an_account_is_granted_a_loan_of_half_of_the_free_permits() -> None:
    # Twenty accounts, so that a share is below 5
    semaphore = fair(100)
    for number in range(20):
        await semaphore.acquire(1, owner=number)
    # 80, then 45 are free
    assert semaphore.request(35, owner=0).done
    assert not semaphore.request(1, owner=0).done


async def test_no_loan_is_granted_while_another_account_waits_within_its_share() -> None:
    semaphore = fair(100)
    blocker = await semaphore.acquire(100, owner="blocker")
    hungry = semaphore.request(90, owner="hungry")
    more = semaphore.request(1, owner="blocker")
    # 80 are free, of which 40 could be lent
    await semaphore.update(blocker, 19)
    assert not hungry.done
    assert not more.done


# -- turns --------------------------------------------------------------------------------------


def granted_permits(waiters: list[Waiter]) -> int:
    return sum(waiter.result().size for waiter in waiters if waiter.done)


@pytest.mark.parametrize(
    ("large", "small"),
    [("big/x", "little/x"), ("t/big", "t/little")],
    ids=["tenants", "namespaces"],
)
async def test_tenants_and_namespaces_are_granted_equal_bytes_not_equal_numbers_of_requests(
    large, small
) -> None:
    # Each has a hundred connections without holds
    semaphore = fair(1_000, queue=0)
    blocker = await semaphore.acquire(1_000, owner="blocker")
    of_large = [semaphore.request(20, None, f"l{one}", large) for one in range(100)]
    of_small = [semaphore.request(2, None, f"s{one}", small) for one in range(100)]
    await semaphore.update(blocker, 800)
    assert abs(granted_permits(of_large) - granted_permits(of_small)) <= 20
    assert semaphore.acquired_permits > 980


async def test_connections_are_granted_equal_bytes_not_equal_numbers_of_requests() -> None:
    semaphore = fair(1_000, queue=0)
    blocker = await semaphore.acquire(1_000, owner="blocker")
    of_large = [semaphore.request(20, None, "large", "t/x") for _ in range(100)]
    of_small = [semaphore.request(2, None, "small", "t/x") for _ in range(100)]
    await semaphore.update(blocker, 700)
    assert abs(granted_permits(of_large) - granted_permits(of_small)) <= 22
    assert semaphore.acquired_permits > 980


async def pass_by(semaphore: AsyncSemaphore, times: int) -> None:
    for number in range(times):
        semaphore.release(await semaphore.acquire(10, owner=f"small {number}"))


async def test_small_requests_overtake_a_large_request_by_at_most_the_limit_in_total() -> None:
    semaphore = fair(100)
    blocker = await semaphore.acquire(90, owner="blocker")
    large = semaphore.request(60, owner="large")
    await pass_by(semaphore, times=10)
    one_more = semaphore.request(10, owner="one more")
    assert not one_more.done
    assert semaphore.statistics().passed_total == 10
    semaphore.release(blocker)
    assert large.done
    assert one_more.done


async def test_after_the_overtaking_bound_released_permits_are_kept_for_the_large_request() -> None:
    semaphore = fair(100)
    blocker = await semaphore.acquire(90, owner="blocker")
    large = semaphore.request(60, owner="large")
    await pass_by(semaphore, times=10)
    semaphore.request(10, owner="one more")
    shrunk = await semaphore.update(blocker, 41)
    assert semaphore.available_permits == 59
    await semaphore.update(shrunk, 40)
    assert large.done


# -- places -------------------------------------------------------------------------------------


async def test_a_full_queue_refuses_the_last_request_of_the_account_with_most_waiters() -> None:
    semaphore = fair(100, queue=3)
    await semaphore.acquire(100, owner="blocker")
    flood = [semaphore.request(size, owner="flood") for size in (10, 20, 30)]
    other = semaphore.request(1, owner="other")
    assert not other.done
    assert [waiter.done for waiter in flood] == [False, False, True]
    assert isinstance(flood[2].error, PermitAcquireQueueFullError)


async def test_a_full_queue_refuses_a_new_request_of_the_account_with_most_waiters() -> None:
    semaphore = fair(100, queue=2)
    await semaphore.acquire(100, owner="blocker")
    waiting = [semaphore.request(1, owner="flood"), semaphore.request(1, owner="flood")]
    with pytest.raises(PermitAcquireQueueFullError):
        semaphore.request(1, owner="flood")
    assert not any(waiter.done for waiter in waiting)


async def test_growth_replaces_a_new_request_in_a_full_queue() -> None:
    semaphore = fair(100, queue=1)
    permit = await semaphore.acquire(100, owner="a")
    shrunk = await semaphore.update(permit, 90)
    await semaphore.acquire(10, owner="b")
    new = semaphore.request(1, owner="c")
    growth = semaphore.request_update(shrunk, 95)
    assert isinstance(new.error, PermitAcquireQueueFullError)
    assert not growth.done


async def test_a_queue_full_of_requests_beyond_a_share_does_not_refuse_another_account() -> None:
    semaphore = fair(100, queue=1)
    await semaphore.acquire(60, owner="a")
    parked = semaphore.request(30, owner="a")
    permit = await semaphore.acquire(30, owner="b")
    assert permit.size == 30
    assert not parked.done


async def test_growth_displacing_its_accounts_last_waiter_is_cancelled_with_its_owner() -> None:
    semaphore = fair(100, queue=1)
    permit = await semaphore.acquire(5, owner="a")
    semaphore.release(permit)
    await semaphore.acquire(100, owner="b")
    waiting = semaphore.request(5, owner="a")
    growth = semaphore.request_update(permit, 10)
    assert isinstance(waiting.error, PermitAcquireQueueFullError)
    semaphore.owners.cancel("a")
    assert isinstance(growth.error, PermitAcquireCancelledError)


async def test_closing_refuses_every_waiter_even_if_a_callback_releases_permits() -> None:
    semaphore = fair(100)
    blocker = await semaphore.acquire(100, owner="blocker")
    first, second = semaphore.request(10, owner="a"), semaphore.request(10, owner="b")
    first.on_done(lambda: semaphore.release(blocker))
    semaphore.close()
    assert isinstance(second.error, PermitAcquireClosedError)


async def test_immediate_grants_are_reported_when_statistics_are_read() -> None:
    limiter = FairLimiter(100)
    limiter.semaphore.request(10, owner="a")
    permit = await limiter.semaphore.acquire(10, owner="a")
    await limiter.semaphore.update(permit, 20)
    limiter.semaphore.statistics()
    assert limiter.outcomes == [AcquireOutcome.GRANTED] * 3


# -- stalls -------------------------------------------------------------------------------------


async def test_forty_holders_of_10_growing_to_20_of_100_all_complete_without_time_passing() -> None:
    limiter = FairLimiter(100)
    semaphore = limiter.semaphore

    async def hold_and_grow(owner: int) -> int:
        permit = await semaphore.acquire(10, owner=owner)
        await asyncio.sleep(0)
        permit = await semaphore.update(permit, 20)
        await asyncio.sleep(0)
        semaphore.release(permit)
        return 20

    grown = await asyncio.gather(*(hold_and_grow(number) for number in range(40)))
    assert grown == [20] * 40
    statistics = semaphore.statistics()
    assert statistics.overdrafts_total >= 1
    assert 100 < statistics.high_water_permits <= 110
    assert (statistics.acquired_permits, statistics.overdraft_permits) == (0, 0)
    assert AcquireOutcome.OVERDRAFT in limiter.outcomes
    assert set(limiter.outcomes) == {AcquireOutcome.GRANTED, AcquireOutcome.OVERDRAFT}


async def test_a_current_overdraft_is_reported(semaphore: AsyncSemaphore) -> None:
    first, second = await semaphore.acquire(50, owner="a"), await semaphore.acquire(50, owner="b")
    oldest, younger = semaphore.request_update(first, 60), semaphore.request_update(second, 60)
    assert oldest.result().size == 60
    assert not younger.done
    assert semaphore.statistics().overdraft_permits == 10
    semaphore.release(oldest.result())
    assert younger.done
    assert semaphore.statistics().overdraft_permits == 0
    assert semaphore.statistics().overdrafts_total == 1


async def test_only_a_single_overdraft_is_granted_at_a_time(semaphore: AsyncSemaphore) -> None:
    first, second = await semaphore.acquire(50, owner="a"), await semaphore.acquire(50, owner="b")
    overdrawn = semaphore.request_update(first, 53)
    waits = semaphore.request_update(second, 54)
    # All wait to grow again
    with pytest.raises(PermitAcquireStalledError):
        semaphore.request_update(overdrawn.result(), 56)
    assert semaphore.acquired_permits == 103
    assert not waits.done


async def test_with_too_small_an_overdraft_the_youngest_growth_is_refused_immediately() -> None:
    limiter = FairLimiter(100, overdraft=5)
    semaphore = limiter.semaphore
    first, second = await semaphore.acquire(50, owner="a"), await semaphore.acquire(50, owner="b")
    oldest = semaphore.request_update(first, 60)
    with pytest.raises(PermitAcquireStalledError):
        semaphore.request_update(second, 60)
    assert (second.size, oldest.done) == (50, False)
    assert limiter.outcomes[-1] is AcquireOutcome.STALLED
    semaphore.release(second)
    assert oldest.result().size == 60


async def test_a_holder_that_does_not_grow_prevents_a_stall() -> None:
    semaphore = fair(100)
    first = await semaphore.acquire(50, owner="a")
    await semaphore.acquire(50, owner="b")
    growth = semaphore.request_update(first, 60)
    assert not growth.done
    assert semaphore.statistics().overdrafts_total == 0


# -- caps ---------------------------------------------------------------------------------------

CAPS = [
    (AdmissionCaps(per_connection=30), LimitScope.CONNECTION),
    (AdmissionCaps(per_namespace=30), LimitScope.NAMESPACE),
    (AdmissionCaps(per_tenant=30), LimitScope.TENANT),
]


@pytest.mark.parametrize(("caps", "scope"), CAPS, ids=lambda one: getattr(one, "value", ""))
async def test_a_request_beyond_a_cap_is_refused_immediately_with_limit_and_scope(
    caps, scope
) -> None:
    semaphore = fair(100, caps=caps)
    with pytest.raises(PermitTooLargeError) as refused:
        await semaphore.acquire(31, owner="a", namespace="t/x")
    assert (refused.value.requested, refused.value.limit, refused.value.scope) == (31, 30, scope)
    assert semaphore.statistics().holders == 0


@pytest.mark.parametrize(("caps", "_scope"), CAPS, ids=lambda one: getattr(one, "value", ""))
async def test_a_request_at_a_cap_waits_until_its_own_permits_are_released(caps, _scope) -> None:
    semaphore = fair(1_000, caps=caps)
    held = await semaphore.acquire(30, owner="a", namespace="t/x")
    more = semaphore.request(1, owner="a", namespace="t/x")
    assert not more.done
    assert semaphore.contention.current() is None
    semaphore.release(held)
    assert more.done


async def test_a_waiter_at_a_namespace_cap_does_not_block_another_namespace() -> None:
    semaphore = fair(100, caps=AdmissionCaps(per_namespace=30))
    await semaphore.acquire(30, owner="a", namespace="t/x")
    capped = semaphore.request(30, owner="b", namespace="t/x")
    other = semaphore.request(30, owner="c", namespace="t/y")
    assert other.done
    assert not capped.done


async def test_growth_of_admitted_permits_may_exceed_a_cap_in_sum() -> None:
    semaphore = fair(100, caps=AdmissionCaps(30, 30, 30))
    await semaphore.acquire(15, owner="a", namespace="t/x")
    permit = await semaphore.acquire(15, owner="a", namespace="t/x")
    grown = await semaphore.update(permit, 30)
    # No single permit is larger, but their sum is
    assert grown.size == 30
    assert semaphore.acquired_permits == 45


async def test_a_capped_permit_may_be_released_twice() -> None:
    semaphore = fair(100, caps=AdmissionCaps(30, 30, 30))
    permits = [await semaphore.acquire(size, owner="a", namespace="t/x") for size in (0, 0, 30)]
    for permit in permits * 2:
        semaphore.release(permit)
    assert semaphore.acquired_permits == 0
    assert (await semaphore.acquire(30, owner="b", namespace="t/x")).size == 30


async def test_a_waiter_at_a_cap_is_reconsidered_when_an_earlier_waiter_is_abandoned() -> None:
    # The cap admits one of two, but the limit was lowered in the meantime
    semaphore = fair(100, caps=AdmissionCaps(per_namespace=50))
    held = await semaphore.acquire(50, owner="x", namespace="t/x")
    other = await semaphore.acquire(50, owner="y", namespace="o/y")
    first = semaphore.request(30, owner="a", namespace="t/x")
    second = semaphore.request(30, owner="b", namespace="t/x")
    semaphore.change_limits(max_permits=60)
    semaphore.release(held)
    semaphore.abandon(first)
    semaphore.release(other)
    assert second.done


# -- many clients behind one connection ---------------------------------------------------------


async def test_a_many_client_connection_is_not_bounded_by_a_share(
    semaphore: AsyncSemaphore,
) -> None:
    semaphore.owners.exempt_from_quota("proxy")
    await semaphore.acquire(50, owner="other")
    await semaphore.acquire(20, owner="proxy", namespace="t/x")
    more = semaphore.request(30, owner="proxy", namespace="t/x")
    assert more.done


async def test_a_many_client_connection_is_not_bounded_by_the_connection_cap() -> None:
    semaphore = fair(100, caps=AdmissionCaps(per_connection=30))
    semaphore.owners.exempt_from_quota("proxy")
    permit = await semaphore.acquire(50, owner="proxy", namespace="t/x")
    assert permit.size == 50


async def test_namespaces_of_a_many_client_connection_are_served_in_turn() -> None:
    semaphore = fair(100, queue=0)
    semaphore.owners.exempt_from_quota("proxy")
    blocker = await semaphore.acquire(100, owner="blocker")
    flood = [semaphore.request(10, None, "proxy", "t/x") for _ in range(50)]
    other = semaphore.request(10, None, "proxy", "t/y")
    await semaphore.update(blocker, 80)
    assert other.done
    assert sum(waiter.done for waiter in flood) == 1


async def test_an_exempt_connection_loses_its_exemption_when_cancelled(
    semaphore: AsyncSemaphore,
) -> None:
    semaphore.owners.exempt_from_quota("proxy")
    semaphore.owners.cancel("proxy")
    await semaphore.acquire(60, owner="proxy")
    more = semaphore.request(30, owner="proxy")
    assert not more.done


# -- contention ---------------------------------------------------------------------------------


async def test_contention_reports_owner_namespace_permits_and_waiting_time() -> None:
    limiter = FairLimiter(100)
    semaphore = limiter.semaphore
    assert semaphore.contention.current() is None
    await semaphore.acquire(90, owner="slow")
    semaphore.request(20, owner="b", namespace="t/x")
    limiter.clock.advance(3.0)
    contention = semaphore.contention.current()
    assert contention is not None
    assert (contention.owner, contention.namespace) == ("b", "t/x")
    assert (contention.needed_permits, contention.available_permits) == (20, 10)
    assert contention.waited_seconds == 3.0


async def test_contention_of_growth_names_its_owner(semaphore: AsyncSemaphore) -> None:
    permit = await semaphore.acquire(60, owner="a")
    await semaphore.acquire(40, owner="b")
    semaphore.request_update(permit, 70)
    contention = semaphore.contention.current()
    assert contention is not None
    assert (contention.owner, contention.needed_permits) == ("a", 10)


async def test_contention_is_reported_once_for_each_new_first_waiter() -> None:
    semaphore = fair(100)
    told: list[Contention] = []
    semaphore.contention.on_change(told.append)
    blocker = await semaphore.acquire(100, owner="slow")
    first = semaphore.request(20, owner="a")
    semaphore.request(30, owner="b")
    shrunk = await semaphore.update(blocker, 90)
    await semaphore.update(shrunk, 80)
    assert first.done
    assert [one.owner for one in told] == ["a", "b"]


async def test_a_waiter_is_served_when_a_contention_listener_cancels_the_largest_holder() -> None:
    semaphore = fair(100)
    await semaphore.acquire(30, owner="fast")
    pinned = await semaphore.acquire(60, owner="slow")
    closed: list[str] = []

    def evict(contention: Contention) -> None:
        slowest = max(("fast", "slow"), key=semaphore.owners.pinned_by)
        closed.append(slowest)
        semaphore.owners.cancel(slowest)

    semaphore.contention.on_change(evict)
    waiter = semaphore.request(50, owner="hungry")
    assert waiter.result().size == 50
    assert closed == ["slow"]
    assert pinned.size == 0


# -- sharing ------------------------------------------------------------------------------------


async def test_shared_permits_are_divided_among_their_sharers(semaphore: AsyncSemaphore) -> None:
    await semaphore.acquire(5, owner="a")
    shared = semaphore.shared.new("t/x")
    semaphore.shared.join(shared, "b")
    semaphore.request(30, owner=shared)
    semaphore.shared.join(shared, "a")
    semaphore.shared.join(shared, "c")
    before = [semaphore.owners.pinned_by(owner) for owner in ("a", "b", "c")]
    semaphore.shared.leave(shared, "c")
    assert before == [15, 10, 10]
    assert [semaphore.owners.pinned_by(owner) for owner in ("a", "b", "c")] == [20, 15, 0]
    assert semaphore.acquired_permits == 35


async def test_a_shared_request_is_granted_immediately_when_a_better_placed_sharer_joins() -> None:
    semaphore = fair(100)
    await semaphore.acquire(60, owner="attacker")
    shared = semaphore.shared.new("t/x")
    semaphore.shared.join(shared, "attacker")
    waiter = semaphore.request(30, owner=shared)
    assert not waiter.done
    semaphore.shared.join(shared, "healthy")
    assert waiter.result().size == 30


async def test_the_best_placed_remaining_sharer_takes_over_when_the_queued_sharer_leaves() -> None:
    semaphore = fair(100)
    await semaphore.acquire(50, owner="attacker")
    blocker = await semaphore.acquire(50, owner="blocker")
    shared = semaphore.shared.new("t/x")
    for owner in ("first", "attacker", "healthy"):
        semaphore.shared.join(shared, owner)
    waiter = semaphore.request(30, owner=shared)
    semaphore.shared.leave(shared, "first")
    semaphore.release(blocker)
    assert waiter.done


async def test_a_loan_is_granted_on_a_release_and_no_more_than_half_of_the_free_permits() -> None:
    # Three accounts, so that a share is 25
    semaphore = fair(100)
    blocker = await semaphore.acquire(60, owner="blocker")
    await semaphore.acquire(20, owner="other")
    await semaphore.acquire(10, owner="a")
    more = semaphore.request(20, owner="a")
    assert not more.done
    # 70 are free, of which 35 are lent
    await semaphore.update(blocker, 0)
    assert more.done
    assert not semaphore.request(5, owner="a").done


async def test_growth_that_fits_is_granted_with_a_full_queue_without_evicting_a_waiter() -> None:
    # The queue is full of new work too large to admit
    semaphore = fair(100, queue=1)
    permit = await semaphore.acquire(10, owner="a")
    waiting = semaphore.request(95, owner="b")
    grown = await semaphore.update(permit, 20)
    assert grown.size == 20
    assert not waiting.done


async def test_the_next_request_of_an_account_is_served_when_its_first_is_abandoned() -> None:
    semaphore = fair(100)
    await semaphore.acquire(60, owner="blocker")
    large = semaphore.request(90, owner="a")
    small = semaphore.request(30, owner="a")
    semaphore.abandon(large)
    assert small.done


async def test_growth_of_a_many_client_connection_is_not_limited_to_a_single_permit() -> None:
    semaphore = fair(100)
    semaphore.owners.exempt_from_quota("proxy")
    first = await semaphore.acquire(30, owner="proxy", namespace="t/x")
    second = await semaphore.acquire(20, owner="proxy", namespace="t/x")
    await semaphore.update(first, 45)
    other = semaphore.request_update(second, 30)
    assert other.done


async def test_a_raised_limit_grants_no_loan_beyond_a_cap_reached_meanwhile() -> None:
    # A waits for a share while the namespace has capacity
    semaphore = fair(100, caps=AdmissionCaps(per_namespace=30))
    for number in range(3):
        await semaphore.acquire(1, owner=number, namespace="u/x")
    await semaphore.acquire(25, owner="a", namespace="t/y")
    over_share = semaphore.request(20, owner="a", namespace="t/x")
    await semaphore.acquire(20, owner="b", namespace="t/x")
    # A share is 33, and 76 could be lent
    semaphore.change_limits(max_permits=200)
    assert not over_share.done
