"""Lines in which accounts wait under policy ``fair``, and the choice of an account's line."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from limiter.admission.caps import CapGroup, Caps, OverQuota
from limiter.admission.fair_queue import LeastFirst, WaitingLine
from limiter.admission.policy import Admission
from limiter.permits.account import Account, SharedHolder

if TYPE_CHECKING:
    from limiter.admission.view import BudgetView
    from limiter.permits.account import Place, Waiter
    from limiter.permits.permit import Holder, Permit


class GrowthQueue:
    """Queue of waiting requests to enlarge a held permit (growth).

    Also counts the held permits, to detect that all of them wait to grow.

    The smallest growth may overtake the oldest when the oldest does not fit: admitted work is
    finite, and no new work is admitted meanwhile, so the oldest waits for admitted work only.
    """

    def __init__(self) -> None:
        self._queue: OrderedDict[Waiter, None] = OrderedDict()
        self._by_need: LeastFirst[Waiter] = LeastFirst()
        # Includes growth that waits elsewhere until its account holds less.
        self._all: OrderedDict[Waiter, None] = OrderedDict()
        self._all_by_need: LeastFirst[Waiter] = LeastFirst()
        self._held_permits = 0
        self._growing_permits = 0

    def __len__(self) -> int:
        return len(self._queue)

    def __contains__(self, waiter: Waiter) -> bool:
        return waiter in self._queue

    def add(self, waiter: Waiter) -> None:
        """Queue a request to enlarge a permit, which precedes requests for new permits."""
        self._queue[waiter] = None
        self._by_need.put(waiter, waiter.needed)

    def discard(self, waiter: Waiter) -> None:
        """Remove a request to enlarge a permit from the queue."""
        del self._queue[waiter]
        self._by_need.discard(waiter)

    def begins(self, waiter: Waiter, permit: Permit) -> None:
        """Count a waiting request to enlarge ``permit``, queued here or parked at its account."""
        self._all[waiter] = None
        self._all_by_need.put(waiter, waiter.needed)
        permit.growing += 1
        self._growing_permits += permit.growing == 1 and permit.size > 0

    def ends(self, waiter: Waiter, permit: Permit) -> None:
        """Stop counting a request to enlarge ``permit``."""
        del self._all[waiter]
        self._all_by_need.discard(waiter)
        permit.growing -= 1
        self._growing_permits -= permit.growing == 0 and permit.size > 0

    def took_on(self, permit: Permit) -> None:
        """Count a granted permit, unless its size is 0."""
        if permit.size > 0:
            self._held_permits += 1
            self._growing_permits += permit.growing > 0
        # A permit restored after another of its growths was undone needs less.
        for waiter in self._all if permit.growing else ():
            if waiter.previous is permit:
                self._all_by_need.put(waiter, waiter.needed)
                if waiter in self._queue:
                    self._by_need.put(waiter, waiter.needed)

    def gave_back(self, permit: Permit, size: int) -> None:
        """Stop counting a permit that released all of its ``size``."""
        if size > 0:
            self._held_permits -= 1
            self._growing_permits -= permit.growing > 0

    def oldest(self) -> Waiter | None:
        """Return the oldest queued request to enlarge a permit, or None."""
        return next(iter(self._queue), None)

    def youngest(self) -> Waiter | None:
        """Return the youngest request to enlarge a permit, queued or parked, or None."""
        return next(reversed(self._all), None)

    def smallest(self) -> Waiter | None:
        """Return the queued request that needs the fewest permits, or None."""
        return _least(self._by_need)

    def every_holder_waits(self) -> bool:
        """Return True if all held permits wait to be enlarged, so that none will be released."""
        return 0 < self._held_permits == self._growing_permits

    def oldest_within(self, room: int) -> Waiter | None:
        """Return the oldest request, queued or parked, for at most ``room`` permits, or None."""
        smallest = _least(self._all_by_need)
        if smallest is None or smallest.needed > room:
            return None
        return next(waiter for waiter in self._all if waiter.needed <= room)


def _least(by_need: LeastFirst[Waiter]) -> Waiter | None:
    while (waiter := by_need.first()) is not None:
        # A permit released since needs its full new size.
        if by_need.value_of(waiter) == waiter.needed:
            return waiter
        by_need.put(waiter, waiter.needed)
    return None


EXACT_ACCOUNTS = 16
"""Up to this number of accounts quotas are exact; beyond, quotas change in steps."""
LENT_DIVISOR = 2
"""Beyond its quota an account may hold half of the free permits (as network switches share
buffers).

Measured with the slow-reader example: with a quarter, clients with further requests wait longer and
are refused more often than under fifo; with all of it, a single client delays the rest
(docs/limiter.md).
"""

LAST_DIVISOR = 2
"""Deferred accounts may hold half of the limit together: the rest is for reading peers."""


class Places(Admission):
    """Base class of FairAdmission; decides in which line each account waits."""

    counts_anonymous = True

    def __init__(self, view: BudgetView) -> None:
        super().__init__(view)
        self._budget = view.budget
        self._accounts = view.accounts
        self._caps = Caps(view.caps)
        self.growth: GrowthQueue = GrowthQueue()
        self._counted = 0
        self._hungry, self._holding, self._last = WaitingLine(), WaitingLine(), WaitingLine()
        self._over_quota, self._over_own_cap = OverQuota(), CapGroup()
        self._over_quota_last = OverQuota()  # Deferred accounts borrow nothing.
        # Permits granted to deferred accounts, counted until released.
        self._last_permits: dict[Permit, int] = {}
        self._last_held = 0

    def _put_in_place(self, account: Account) -> None:
        """Move an account to the line in which its oldest request has to wait."""
        waiter = account.first_in_line
        place = None
        while waiter is not None and waiter.previous and self._grows_first(account, waiter):
            del account.parked_growth[waiter]
            self.growth.add(waiter)
            waiter = account.first_in_line
        if waiter is not None:
            place = self._place_of_waiter(account, waiter)
        if account.place is not None and account.place is not place:
            account.place.discard(account)
        account.place = place
        if waiter is not None and place is not None:
            place.add(account, waiter)

    def _place_of_waiter(self, account: Account, waiter: Waiter) -> Place:
        if waiter.previous is not None:
            return self._over_quota  # Otherwise the growth would have gone first.
        return self._place_of(account, waiter.namespace, waiter.size)

    def _place_of(self, account: Account, namespace: str, size: int) -> Place:
        if self._caps.any:
            group = self._caps.blocking(namespace, size)
            if group is not None:
                return group
            if account.holds and not self._caps.connection_allows(account, size):
                return self._over_own_cap
        hungry = account.many_clients or not account.holds
        if not hungry and account.weight + size > self._quota():
            return self._over_quota_last if account.deferred else self._over_quota
        if account.deferred:
            return self._last
        return self._hungry if hungry else self._holding

    def _quota(self) -> int:
        return self._budget.max_permits // (self._active() + 1)

    def _lent(self) -> int:
        return self._budget.available_permits // LENT_DIVISOR

    def _left_for_last(self, available: int) -> int:
        """Return the permits that deferred accounts may get; all free ones if they hold none."""
        if not self._last_held:
            return available
        return min(available, self._budget.max_permits // LAST_DIVISOR - self._last_held)

    def _active(self) -> int:
        """Return the number of accounts, rounded up by at most a third to keep quotas stable."""
        count = len(self._accounts)
        if count <= EXACT_ACCOUNTS or not 3 * self._counted <= 4 * count <= 4 * self._counted:
            self._counted = count if count <= EXACT_ACCOUNTS else count + count // 8
        return self._counted

    def _grows_first(self, account: Account, waiter: Waiter) -> bool:
        """Return True if a request to enlarge a permit precedes requests for new permits.

        A single growth of an account does so even beyond its quota, so that the account cannot
        deadlock itself.
        """
        if account.many_clients or account.weight + waiter.needed <= self._quota():
            return True
        favoured = account.favoured
        if favoured is not None and favoured.size > 0 and favoured is not waiter.previous:
            return False
        account.favoured = waiter.previous
        return True

    def _look_again(self, namespace: str) -> None:
        """Move accounts out of the lines of a namespace's caps if their requests fit now."""
        if self._caps.any:
            for account in self._caps.let_go(namespace):
                self._put_in_place(account)

    def holds_changed(self, account: Account) -> None:
        """Move an account to another line if its changed permits require it."""
        if account.stands:
            self._put_in_place(account)

    def took_on(self, permit: Permit) -> None:
        """Count a granted or restored permit."""
        self.growth.took_on(permit)
        if self._accounts.deferred_owners and permit.size and _is_deferred(permit.holder):
            self._last_permits[permit] = permit.size
            self._last_held += permit.size
        if self._caps.any:
            self._caps.took_on(permit)

    def gave_back(self, permit: Permit, size: int) -> None:
        """Stop counting a released permit; move accounts whose requests now fit to other lines."""
        self.growth.gave_back(permit, size)
        if self._last_permits:
            self._last_held -= self._last_permits.pop(permit, 0)
        if self._caps.any:
            self._caps.gave_back(permit, size)
            self._look_again(permit.namespace)

    def accounts_changed(self) -> None:
        """Move accounts to other lines if their requests fit now that quotas are larger.

        Quotas grow with fewer accounts or a higher limit.
        """
        for over_quota in (self._over_quota, self._over_quota_last):
            while over_quota and (account := over_quota.first_within(self._quota())) is not None:
                self._put_in_place(account)


def _is_deferred(holder: Holder | None) -> bool:
    """Return True if the permit's only owner is deferred, or all owners sharing it are.

    A shared holder lists members that are not deferred first.
    """
    account = holder.first_member() if isinstance(holder, SharedHolder) else holder
    return isinstance(account, Account) and account.deferred
