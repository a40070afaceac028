"""Accounts: holdings, sharing, and forgetting."""

import pytest

from limiter.permits.account import Account, SharedHolder
from limiter.permits.accounts import MAX_SPARE, Accounts
from limiter.permits.permit import Permit


def account_of(owner: str) -> Account:
    return Account(owner, "", many_clients=False)


def test_an_account_holds_the_sum_of_its_permits() -> None:
    account = account_of("a")
    permits = [Permit(3), Permit(4)]
    for permit in permits:
        account.took_on(permit)
    account.gave_back(permits[0], 3)
    assert (account.held, account.holds) == (4, True)


def test_a_permit_is_subtracted_once() -> None:
    account = account_of("a")
    permit, other = Permit(3), Permit(4)
    account.took_on(permit)
    account.took_on(other)
    account.gave_back(permit, 3)
    account.gave_back(permit, 3)
    assert account.held == 4


def test_a_permit_of_size_zero_counts_as_held() -> None:
    account = account_of("a")
    account.took_on(Permit(0))
    assert account.holds


# -- sharing ------------------------------------------------------------------------------------


def shared_by(*accounts: Account, size: int = 0) -> SharedHolder:
    holder = SharedHolder("t/x")
    for account in accounts:
        holder.joined_by(account)
    if size:
        holder.took_on(Permit(size))
    return holder


def test_a_shared_permit_is_divided_by_references() -> None:
    one, two = account_of("a"), account_of("b")
    holder = shared_by(one, two, two, size=30)
    assert (one.held, two.held) == (10, 20)
    assert (holder.references, holder.sharers) == (3, 2)


def test_a_late_sharer_holds_a_part_and_reduces_the_earlier_parts() -> None:
    one, two = account_of("a"), account_of("b")
    holder = shared_by(one, size=30)
    holder.joined_by(two)
    assert (one.held, two.held, two.holds) == (15, 15, True)


def test_a_leaving_sharer_no_longer_holds_a_part() -> None:
    one, two = account_of("a"), account_of("b")
    holder = shared_by(one, two, size=30)
    holder.left_by(one, 1)
    assert (one.held, one.holds, one.weight) == (0, False, 0)
    assert two.held == 30
    assert list(holder.members()) == [two]


def test_a_sharer_keeps_a_part_until_its_last_reference_is_released() -> None:
    one, two = account_of("a"), account_of("b")
    holder = shared_by(one, one, two, size=30)
    holder.left_by(one, 1)
    assert (one.held, holder.references_of(one)) == (15, 1)


@pytest.mark.parametrize("others", [1, 7, 100])
def test_the_weight_of_a_part_is_within_a_factor_of_two(others: int) -> None:
    first = account_of("first")
    holder = shared_by(first, size=6_400)
    joined = [account_of(str(number)) for number in range(others)]
    for account in joined:
        holder.joined_by(account)
        assert first.held // 2 <= first.weight <= 2 * first.held + 1
    for account in joined:
        holder.left_by(account, 1)
        assert first.held // 2 <= first.weight <= 2 * first.held + 1
    assert first.weight == 6_400


def test_when_the_shared_permit_is_released_no_sharer_holds_a_part() -> None:
    one, two = account_of("a"), account_of("b")
    holder = shared_by(one, two)
    permit = Permit(30)
    holder.took_on(permit)
    holder.gave_back(permit, 30)
    assert not any((one.holds, two.holds, one.weight, two.weight, holder.held))


# -- accounts -----------------------------------------------------------------------------------


def test_an_owner_has_a_single_account_in_all_namespaces() -> None:
    accounts = Accounts()
    assert accounts.of("a", "t/x") is accounts.of("a", "t/y")
    assert len(accounts) == 1


@pytest.mark.parametrize("owner", ["proxy", None], ids=["proxy", "who does not say"])
def test_an_owner_of_many_clients_has_an_account_in_each_namespace(owner: str | None) -> None:
    accounts = Accounts()
    accounts.stands_for_many("proxy")
    one, other = accounts.of(owner, "t/x"), accounts.of(owner, "t/y")
    assert one is not other
    assert one.many_clients
    assert (len(accounts), accounts.all_of(owner)) == (2, [one, other])


def test_an_account_that_holds_permits_is_not_forgotten() -> None:
    accounts = Accounts()
    account = accounts.of("a", "")
    permit = Permit(0)
    account.took_on(permit)
    kept = not accounts.forget_if_idle(account)
    account.gave_back(permit, 0)
    assert kept
    assert accounts.forget_if_idle(account)
    assert list(accounts) == []


def test_an_idle_account_of_a_many_client_owner_is_forgotten_for_its_namespace_only() -> None:
    accounts = Accounts()
    accounts.stands_for_many("proxy")
    one, other = accounts.of("proxy", "t/x"), accounts.of("proxy", "t/y")
    accounts.forget_if_idle(one)
    assert list(accounts) == [other]
    assert len(accounts) == 1


def test_forgetting_an_older_account_of_an_owner_keeps_the_newer_account() -> None:
    accounts = Accounts()
    old = accounts.of("a", "")
    accounts.forget_if_idle(old)
    accounts.forget_owner("a")
    new = accounts.of("a", "")
    forgotten = accounts.forget_if_idle(old)
    assert not forgotten
    assert accounts.of("a", "") is new


def test_spare_accounts_are_bounded() -> None:
    accounts = Accounts()
    for number in range(MAX_SPARE + 50):
        accounts.forget_if_idle(accounts.of(number, ""))
    assert len(accounts) == 0
    assert len(accounts._spare) == MAX_SPARE


def test_a_forgotten_owner_no_longer_stands_for_many_clients() -> None:
    accounts = Accounts()
    accounts.stands_for_many("proxy")
    accounts.forget_owner("proxy")
    assert not accounts.of("proxy", "t/x").many_clients


def test_requests_without_an_owner_always_stand_for_many_clients() -> None:
    accounts = Accounts()
    accounts.forget_owner(None)
    assert accounts.of(None, "t/x").many_clients
