"""Accounts of non-reading peers go last, without dragging other accounts along."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limiter.admission.fair import MEMBERS_LOOKED_AT
from limiter.admission.rules import AdmissionPolicy, AdmissionRules
from limiter.permits.account import Waiter
from limiter.permits.permit import Permit
from limiter.semaphore.async_semaphore import AsyncSemaphore
from tests.support.clocks.manual_clock import ManualClock
from tests.support.examples import many
from tests.support.limiters import fair

NS = "public/default"


def held(semaphore: AsyncSemaphore, size: int, owner: object) -> Permit:
    """Acquire all free permits."""
    return semaphore.request(size, owner=owner).result()


class Full:
    """A semaphore of 100 permits, all held by one account that releases on command."""

    def __init__(self, policy: AdmissionPolicy = AdmissionPolicy.FAIR) -> None:
        self.semaphore = AsyncSemaphore(100, 100, 25.0, ManualClock(), rules=AdmissionRules(policy))
        self._held = held(self.semaphore, 100, "blocker")

    def gives_back(self, size: int) -> None:
        waiter = self.semaphore.request_update(self._held, self._held.size - size)
        self._held = waiter.result()


@pytest.fixture
def full() -> Full:
    return Full()


# -- after all other accounts ---------------------------------------------------------------------


def test_a_deferred_account_is_served_after_a_later_request_of_another_account(full: Full) -> None:
    deferred = full.semaphore.request(10, owner="slow")
    other = full.semaphore.request(10, owner="other")
    full.semaphore.owners.defer("slow")
    full.gives_back(10)
    assert (deferred.done, other.done) == (False, True)


def test_an_account_deferred_before_its_request_is_served_after_a_later_request(full: Full) -> None:
    full.semaphore.owners.defer("slow")
    deferred = full.semaphore.request(10, owner="slow")
    other = full.semaphore.request(10, owner="other")
    full.gives_back(10)
    assert (deferred.done, other.done) == (False, True)


def test_a_deferred_account_without_permits_is_served_after_an_account_with_permits(
    full: Full,
) -> None:
    full.gives_back(20)
    held(full.semaphore, 10, "other")
    held(full.semaphore, 10, "filler")
    full.semaphore.owners.defer("slow")
    hungry = full.semaphore.request(10, owner="slow")
    more = full.semaphore.request(10, owner="other")
    full.gives_back(10)
    assert (hungry.done, more.done) == (False, True)


def test_a_small_request_of_a_deferred_account_does_not_overtake_a_large_request(
    full: Full,
) -> None:
    full.semaphore.owners.defer("slow")
    small = full.semaphore.request(5, owner="slow")
    large = full.semaphore.request(50, owner="other")
    full.gives_back(20)
    assert (small.done, large.done) == (False, False)
    full.gives_back(30)
    assert (small.done, large.done) == (False, True)


def test_a_deferred_account_is_served_when_no_other_account_waits(full: Full) -> None:
    full.semaphore.owners.defer("slow")
    deferred = full.semaphore.request(10, owner="slow")
    full.gives_back(10)
    assert deferred.done


# -- the part of the limit for deferred accounts ---------------------------------------------------


def deferred_of(semaphore: AsyncSemaphore, *sizes: int) -> list[Waiter]:
    """Make a number of deferred accounts send a request each."""
    semaphore.owners.defer(*range(len(sizes)))
    return [semaphore.request(size, owner=owner) for owner, size in enumerate(sizes)]


def test_deferred_accounts_together_hold_at_most_half_of_the_limit() -> None:
    semaphore = fair(100)
    first, second = deferred_of(semaphore, 30, 30)
    other = semaphore.request(60, owner="other")
    # Free permits are reserved for accounts that are not deferred
    assert (first.done, second.done, other.done) == (True, False, True)


def test_permits_released_by_a_deferred_account_serve_the_next_deferred_account() -> None:
    semaphore = fair(100)
    first, second = deferred_of(semaphore, 30, 30)
    semaphore.release(first.result())
    assert second.done


def test_a_single_request_of_a_deferred_account_may_exceed_half_of_the_limit() -> None:
    semaphore = fair(100)
    large, small = deferred_of(semaphore, 80, 5)
    assert (large.done, small.done) == (True, False)
    semaphore.release(large.result())
    assert small.done


def test_an_undeferred_account_is_served_beyond_the_part_of_deferred_accounts() -> None:
    semaphore = fair(100)
    _, second = deferred_of(semaphore, 30, 30)
    semaphore.owners.undefer(1)
    assert second.done


def test_a_waiter_at_the_limit_of_deferred_accounts_is_reported_as_contention() -> None:
    semaphore = fair(100)
    deferred_of(semaphore, 30, 30)
    contention = semaphore.contention.current()
    # So that the holder is closed
    assert contention is not None
    assert contention.owner == 1


def test_permits_shared_by_deferred_accounts_count_towards_their_part_of_the_limit() -> None:
    semaphore = fair(100)
    semaphore.owners.defer("a", "b", "c")
    holder = semaphore.shared.new(NS)
    for owner in ("a", "b"):
        semaphore.shared.join(holder, owner)
    semaphore.request(40, owner=holder).result()
    third = semaphore.request(20, owner="c")
    assert not third.done
    semaphore.shared.disband(holder)
    assert third.done


def test_a_request_of_a_deferred_account_is_granted_immediately_if_no_account_waits() -> None:
    semaphore = fair(100)
    semaphore.owners.defer("slow")
    assert semaphore.request(10, owner="slow").done


def test_among_deferred_accounts_a_small_request_may_overtake_a_large_request(full: Full) -> None:
    for owner in ("slow", "slower"):
        full.semaphore.owners.defer(owner)
    large = full.semaphore.request(50, owner="slow")
    small = full.semaphore.request(5, owner="slower")
    full.gives_back(20)
    assert (large.done, small.done) == (False, True)


def test_growth_of_a_deferred_account_is_still_served_before_new_requests(full: Full) -> None:
    full.gives_back(10)
    permit = held(full.semaphore, 10, "slow")
    full.semaphore.owners.defer("slow")
    other = full.semaphore.request(10, owner="other")
    growth = full.semaphore.request_update(permit, 20)
    full.gives_back(10)
    assert (growth.done, other.done) == (True, False)


def test_all_accounts_of_a_deferred_many_client_connection_are_deferred(full: Full) -> None:
    full.semaphore.owners.exempt_from_quota("proxy")
    before = full.semaphore.request(10, owner="proxy", namespace="t/one")
    full.semaphore.owners.defer("proxy")
    after = full.semaphore.request(10, owner="proxy", namespace="t/two")
    other = full.semaphore.request(10, owner="other", namespace="t/one")
    full.gives_back(10)
    assert [one.done for one in (before, after, other)] == [False, False, True]


# -- within a share -------------------------------------------------------------------------------


def test_a_deferred_account_is_served_within_its_share(full: Full) -> None:
    full.gives_back(50)
    held(full.semaphore, 20, "slow")
    held(full.semaphore, 30, "other")
    full.semaphore.owners.defer("slow")
    within = full.semaphore.request(5, owner="slow")
    full.gives_back(5)
    assert within.done


def test_a_deferred_account_is_granted_no_loan_beyond_its_share() -> None:
    # Alone, a share is 50
    semaphore = fair(1_000)
    held(semaphore, 400, "slow")
    semaphore.owners.defer("slow")
    beyond = semaphore.request(101, owner="slow")
    assert not beyond.done
    assert semaphore.contention.current() is None


def nine_accounts() -> tuple[AsyncSemaphore, Permit]:
    """Return a full semaphore with small shares, and a releasable permit of 28."""
    semaphore = fair(100)
    for number in range(7):
        held(semaphore, 1, number)
    held(semaphore, 8, "slow")
    held(semaphore, 8, "other")
    held(semaphore, 49, "blocker")
    return semaphore, held(semaphore, 28, "gives back")


def test_a_loan_is_granted_to_an_account_that_is_not_deferred() -> None:
    # Both hold their share; the deferred account requests less
    semaphore, permit = nine_accounts()
    deferred, other = semaphore.request(5, owner="slow"), semaphore.request(6, owner="other")
    semaphore.owners.defer("slow")
    # When half of the free permits suffices for one of them
    semaphore.release(permit)
    assert (deferred.done, other.done) == (False, True)


def test_an_account_waiting_for_its_share_is_granted_a_loan_when_undeferred() -> None:
    semaphore, permit = nine_accounts()
    waiter = semaphore.request(5, owner="slow")
    semaphore.owners.defer("slow")
    semaphore.release(permit)
    waited = not waiter.done
    semaphore.owners.undefer("slow")
    assert waited
    assert waiter.done


def test_a_deferred_account_is_served_when_its_share_rises() -> None:
    # Three accounts, so that a share is 25
    semaphore = fair(100)
    held(semaphore, 20, "slow")
    others = [held(semaphore, 10, owner) for owner in ("one", "two")]
    semaphore.owners.defer("slow")
    waiter = semaphore.request(20, owner="slow")
    waited = not waiter.done
    # When the other accounts leave
    for permit in others:
        semaphore.release(permit)
    assert waited
    assert waiter.done


# -- accounts that are undeferred -----------------------------------------------------------------


def test_an_undeferred_account_is_served_before_a_later_request(full: Full) -> None:
    waiter = full.semaphore.request(10, owner="slow")
    full.semaphore.owners.defer("slow")
    full.semaphore.owners.undefer("slow")
    later = full.semaphore.request(10, owner="later")
    full.gives_back(10)
    assert (waiter.done, later.done) == (True, False)


def test_a_cancelled_owner_is_no_longer_deferred_on_its_next_request(full: Full) -> None:
    full.semaphore.owners.defer("slow")
    full.semaphore.request(10, owner="slow")
    full.semaphore.owners.cancel("slow")
    again = full.semaphore.request(10, owner="slow")
    later = full.semaphore.request(10, owner="later")
    full.gives_back(10)
    assert (again.done, later.done) == (True, False)


def test_an_account_deferred_while_holding_no_permits_stays_deferred_for_its_next_request(
    full: Full,
) -> None:
    full.gives_back(10)
    full.semaphore.release(held(full.semaphore, 10, "slow"))
    full.semaphore.owners.defer("slow")
    held(full.semaphore, 10, "filler")
    deferred = full.semaphore.request(10, owner="slow")
    other = full.semaphore.request(10, owner="other")
    full.gives_back(10)
    assert (deferred.done, other.done) == (False, True)


def test_an_account_undeferred_while_holding_no_permits_is_not_deferred_later(full: Full) -> None:
    full.gives_back(10)
    permit = held(full.semaphore, 10, "slow")
    full.semaphore.owners.defer("slow")
    full.semaphore.release(permit)
    full.semaphore.owners.undefer("slow")
    held(full.semaphore, 10, "filler")
    waiter = full.semaphore.request(10, owner="slow")
    later = full.semaphore.request(10, owner="later")
    full.gives_back(10)
    assert (waiter.done, later.done) == (True, False)


def test_undeferring_an_account_that_was_not_deferred_is_a_no_op() -> None:
    semaphore = fair(100)
    semaphore.owners.undefer("other")
    assert semaphore.request(10, owner="other").done


# -- sharing --------------------------------------------------------------------------------------


class Shared(Full):
    """A shared request of 10, behind a stranger's request."""

    def __init__(self, *sharers: object) -> None:
        super().__init__()
        self.holder = self.semaphore.shared.new(NS)
        for sharer in sharers:
            self.semaphore.shared.join(self.holder, sharer)
        self.waiter = self.semaphore.request(10, owner=self.holder)

    def goes_before_a_newcomer(self) -> bool:
        newcomer = self.semaphore.request(10, owner="newcomer")
        self.gives_back(10)
        assert self.waiter.done is not newcomer.done
        return self.waiter.done


@pytest.mark.parametrize("deferred", ["one", "two"])
def test_a_shared_request_waits_in_the_place_of_a_sharer_that_is_not_deferred(
    deferred: str,
) -> None:
    shared = Shared("one", "two")
    shared.semaphore.owners.defer(deferred)
    assert shared.goes_before_a_newcomer()


def test_a_shared_request_is_served_last_when_all_of_its_sharers_are_deferred() -> None:
    shared = Shared("one", "two")
    shared.semaphore.owners.defer("one")
    shared.semaphore.owners.defer("two")
    assert not shared.goes_before_a_newcomer()


@pytest.mark.parametrize("first", ["one", "two"])
def test_a_shared_request_moves_to_the_first_sharer_that_is_undeferred(first: str) -> None:
    shared = Shared("one", "two")
    shared.semaphore.owners.defer("one")
    shared.semaphore.owners.defer("two")
    shared.semaphore.owners.undefer(first)
    assert shared.goes_before_a_newcomer()


def test_a_shared_request_moves_to_a_joining_sharer_that_is_not_deferred() -> None:
    shared = Shared("one")
    shared.semaphore.owners.defer("one")
    shared.semaphore.shared.join(shared.holder, "two")
    assert shared.goes_before_a_newcomer()


def test_a_shared_request_moves_to_a_joining_sharer_with_a_request_of_its_own() -> None:
    shared = Shared("one")
    shared.semaphore.owners.defer("one")
    own = shared.semaphore.request(5, owner="two")
    shared.semaphore.shared.join(shared.holder, "two")
    shared.semaphore.abandon(own)
    assert shared.waiter.account is not None
    assert shared.waiter.account.owner == "two"
    assert shared.goes_before_a_newcomer()


def test_a_shared_request_is_served_last_when_its_last_undeferred_sharer_leaves() -> None:
    shared = Shared("one", "two")
    shared.semaphore.owners.defer("one")
    shared.semaphore.owners.cancel("two")
    assert not shared.waiter.done
    assert not shared.goes_before_a_newcomer()


def test_a_shared_request_finds_the_only_undeferred_sharer_among_many_deferred_sharers() -> None:
    many = list(range(3 * MEMBERS_LOOKED_AT))
    shared = Shared(*many)
    for number in many[:-1]:
        shared.semaphore.owners.defer(number)
    assert shared.waiter.account is not None
    assert shared.waiter.account.owner == many[-1]
    assert shared.goes_before_a_newcomer()


def test_a_shared_request_finds_a_late_undeferred_sharer_when_another_sharer_leaves() -> None:
    many = list(range(3 * MEMBERS_LOOKED_AT))
    shared = Shared(*many)
    for number in many:
        shared.semaphore.owners.defer(number)
    for owner in ("first", "second"):
        shared.semaphore.shared.join(shared.holder, owner)
    shared.semaphore.owners.cancel("first")
    assert shared.goes_before_a_newcomer()


def test_a_shared_request_is_served_last_rather_than_blocked_by_a_sharer_at_its_share() -> None:
    full = Full()
    full.gives_back(60)
    held(full.semaphore, 60, "big")
    full.semaphore.owners.defer("slow")
    holder = full.semaphore.shared.new(NS)
    for owner in ("big", "slow"):
        full.semaphore.shared.join(holder, owner)
    waiter = full.semaphore.request(10, owner=holder)
    # When no other account waits
    full.gives_back(10)
    assert waiter.done


def test_own_requests_of_a_deferred_sharer_stay_behind_the_shared_request() -> None:
    shared = Shared("one", "two")
    own = shared.semaphore.request(10, owner="one")
    shared.semaphore.owners.defer("one")
    shared.gives_back(10)
    newcomer = shared.semaphore.request(10, owner="newcomer")
    shared.gives_back(10)
    assert [one.done for one in (shared.waiter, newcomer, own)] == [True, True, False]


# -- as shipped -----------------------------------------------------------------------------------


def test_policy_fifo_ignores_deferral() -> None:
    full = Full(AdmissionPolicy.FIFO)
    first = full.semaphore.request(10, owner="slow")
    second = full.semaphore.request(10, owner="other")
    full.semaphore.owners.defer("slow")
    full.gives_back(10)
    assert (first.done, second.done) == (True, False)


# -- invariants -----------------------------------------------------------------------------------

OWNERS = st.sampled_from(["a", "b", "c", "proxy"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), OWNERS, st.integers(1, 60)),
        st.tuples(st.just("ask together"), st.integers(0, 1), st.integers(1, 60)),
        st.tuples(st.just("join"), OWNERS, st.integers(0, 1)),
        st.tuples(st.just("give back"), st.integers(0, 5), st.just(0)),
        st.tuples(st.sampled_from(["defer", "undefer", "cancel"]), OWNERS, st.just(0)),
    ),
    max_size=50,
)


class History:
    """Requests, sharers, deferrals and ends in any order."""

    def __init__(self) -> None:
        self.semaphore = fair(100)
        self.semaphore.owners.exempt_from_quota("proxy")
        self.holders = [self.semaphore.shared.new(NS) for _ in range(2)]
        self.waiters: list[Waiter] = []

    def does(self, what: str, whose: str | int, number: int) -> None:
        semaphore = self.semaphore
        if what == "ask":
            self.waiters.append(semaphore.request(number, owner=whose, namespace=NS))
        elif what == "ask together" and self.holders[int(whose)].references:
            self.waiters.append(semaphore.request(number, owner=self.holders[int(whose)]))
        elif what == "join":
            semaphore.shared.join(self.holders[number], whose)
        elif what == "give back":
            self.gives_back(int(whose))
        elif what == "cancel":
            semaphore.owners.cancel(whose)
        elif what in ("defer", "undefer"):
            (semaphore.owners.defer if what == "defer" else semaphore.owners.undefer)(whose)

    @property
    def held(self) -> list[Permit]:
        return [one.permit for one in self.waiters if one.permit is not None and one.permit.size]

    def gives_back(self, number: int) -> None:
        if self.held:
            self.semaphore.release(self.held[number % len(self.held)])


@settings(max_examples=many(300), deadline=None)
@given(STEPS)
def test_under_any_deferrals_every_request_ends_and_no_permit_is_lost(steps) -> None:
    history = History()
    semaphore = history.semaphore
    for what, whose, number in steps:
        history.does(what, whose, number)
        assert semaphore.acquired_permits == sum(permit.size for permit in history.held) <= 100
        assert history.held or not semaphore.queue_size
    while history.held:
        history.gives_back(0)
    assert all(waiter.done for waiter in history.waiters)
    assert (semaphore.acquired_permits, semaphore.queue_size) == (0, 0)
