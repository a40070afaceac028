"""Shares and caps: how much an account may hold, and when an account waits for itself."""

import pytest

from limiter.admission.caps import AdmissionCaps, Caps, OverQuota
from limiter.errors import LimitScope, PermitTooLargeError
from limiter.permits.account import Account, SharedHolder, Waiter
from limiter.permits.permit import Permit


def waiting(owner: str, size: int, held: int = 0) -> Account:
    """Return an account that holds a permit and waits for another."""
    account = Account(owner, "", many_clients=False)
    if held:
        account.took_on(Permit(held))
    account.line[Waiter(size, None, account, "t/x")] = None
    return account


def park(caps: Caps, account: Account) -> None:
    waiter = account.first_in_line
    assert waiter is not None
    group = caps.blocking(waiter.namespace, waiter.size)
    assert group is not None
    group.add(account, waiter)
    account.place = group


# -- over the share -----------------------------------------------------------------------------


def test_the_account_needing_the_smallest_share_is_the_first_to_fit() -> None:
    over = OverQuota()
    accounts = [waiting("a", 10, held=50), waiting("b", 20, held=10)]
    for account in accounts:
        waiter = account.first_in_line
        assert waiter is not None
        over.add(account, waiter)
    assert over.first_within(29) is None
    assert over.first_within(30) is accounts[1]
    over.discard(accounts[1])
    assert over.first_within(59) is None
    assert over.first_within(60) is accounts[0]


# -- caps ---------------------------------------------------------------------------------------


def test_without_caps_no_holdings_are_recorded_and_any_request_is_allowed() -> None:
    caps = Caps(AdmissionCaps())
    caps.took_on(Permit(5, None, "t/x"))
    assert not caps.any
    assert caps.blocking("t/x", 10**9) is None
    caps.validate(10**9, many_clients=False)


@pytest.mark.parametrize(
    ("configured", "scope"),
    [
        (AdmissionCaps(per_connection=10), LimitScope.CONNECTION),
        (AdmissionCaps(per_namespace=10), LimitScope.NAMESPACE),
        (AdmissionCaps(per_tenant=10), LimitScope.TENANT),
    ],
)
def test_a_request_larger_than_a_cap_is_refused_naming_scope_and_limit(configured, scope) -> None:
    caps = Caps(configured)
    caps.validate(10, many_clients=False)
    with pytest.raises(PermitTooLargeError) as refused:
        caps.validate(11, many_clients=False)
    assert (refused.value.scope, refused.value.limit) == (scope, 10)


def test_the_cap_of_a_connection_does_not_bound_requests_of_a_many_client_connection() -> None:
    Caps(AdmissionCaps(per_connection=10)).validate(11, many_clients=True)


def test_a_connection_may_hold_up_to_its_cap() -> None:
    caps = Caps(AdmissionCaps(per_connection=10))
    account = waiting("a", 1, held=7)
    assert caps.connection_allows(account, 3)
    assert not caps.connection_allows(account, 4)


def test_a_connections_part_of_shared_permits_counts_towards_its_cap() -> None:
    caps = Caps(AdmissionCaps(per_connection=10))
    account, holder = waiting("a", 1, held=2), SharedHolder("t/x")
    holder.joined_by(account)
    holder.took_on(Permit(5))
    assert caps.connection_allows(account, 3)
    assert not caps.connection_allows(account, 4)


def test_the_connection_cap_does_not_bound_the_total_of_a_many_client_connection() -> None:
    caps = Caps(AdmissionCaps(per_connection=10))
    proxy = Account("proxy", "t/x", many_clients=True)
    proxy.took_on(Permit(10))
    assert caps.connection_allows(proxy, 1)


@pytest.mark.parametrize(
    ("configured", "other"),
    [(AdmissionCaps(per_namespace=10), "t/y"), (AdmissionCaps(per_tenant=10), "u/x")],
)
def test_a_namespace_or_tenant_at_its_cap_blocks_only_its_own_requests(configured, other) -> None:
    caps = Caps(configured)
    caps.took_on(Permit(8, None, "t/x"))
    assert caps.blocking("t/x", 2) is None
    assert caps.blocking("t/x", 3) is not None
    assert caps.blocking(other, 3) is None


def test_all_namespaces_of_a_tenant_count_towards_its_cap() -> None:
    caps = Caps(AdmissionCaps(per_tenant=10))
    caps.took_on(Permit(5, None, "t/x"))
    caps.took_on(Permit(5, None, "t/y"))
    assert caps.blocking("t/z", 1) is not None


def test_the_longest_paused_accounts_resume_first_as_far_as_the_cap_allows() -> None:
    caps = Caps(AdmissionCaps(per_namespace=10))
    held = Permit(10, None, "t/x")
    caps.took_on(held)
    accounts = [waiting(owner, size) for owner, size in (("a", 4), ("b", 4), ("c", 4), ("d", 1))]
    for account in accounts:
        park(caps, account)
    caps.gave_back(held, 10)
    # 12 would be too much, and no request overtakes an earlier one
    assert caps.let_go("t/x") == accounts[:2]


def test_a_group_without_permits_and_waiters_is_forgotten() -> None:
    caps = Caps(AdmissionCaps(per_namespace=10, per_tenant=10))
    held = Permit(10, None, "t/x")
    caps.took_on(held)
    caps.gave_back(held, 10)
    caps.let_go("t/x")
    assert caps._groups == {}


def test_releasing_permits_of_zero_size_keeps_no_group() -> None:
    caps = Caps(AdmissionCaps(per_namespace=10))
    permits = [Permit(0, None, "t/x"), Permit(0, None, "t/x")]
    for permit in permits:
        caps.took_on(permit)
    for permit in permits:
        caps.gave_back(permit, 0)
        caps.let_go("t/x")
    assert caps._groups == {}
