"""Admission policy ``fair``: bounds each owner's permits, starves no owner and ends deadlocks.

1. Growth of admitted work precedes new work, and blocks new work while it waits. An account that
   would exceed its quota (rule 4) grows a single permit at a time; its further growth waits.
2. An account without permits (*hungry*) precedes all accounts with permits.
3. Among equals, tenants, then namespaces, then accounts are served round-robin, weighted by bytes.
   An account queues with its oldest request, so nine thousand queued requests are a single entry.
4. Beyond its first request an account is served while its permits stay within its quota, limit /
   (active accounts + 1): a share is left for the next newcomer. An account is lent more, up to half
   of the free permits, only while no account waits within its quota, so that no memory stays idle
   for absent accounts.
5. When the next request does not fit, the smallest fitting request may overtake if its account is
   hungry as well. At most ``limit`` permits in all overtake a request while it is next; after that,
   every released permit is kept for the request.
6. When all held permits wait to grow, the oldest growth may overdraw (the semaphore decides).
7. In a full queue the account with the most entries loses its last entry to an account with fewer.
8. A deferred account, whose peer reads none of its responses, comes after all accounts. Further
   requests of deferred accounts are granted only while they would hold half of the limit together.

Bounds: queue entries are bounded by the semaphore's queue; each step costs O(log n) of them.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from limiter.admission.fair_queue import LeastFirst, WaitingLine
from limiter.admission.places import Places
from limiter.permits.account import SharedHolder

if TYPE_CHECKING:
    from collections.abc import Callable

    from limiter.admission.view import BudgetView
    from limiter.permits.account import Account, Place, Waiter
    from limiter.permits.permit import Permit


MEMBERS_LOOKED_AT = 16
"""Most members examined when a shared request moves to another member's account."""
_LAST = 2
_PARKED = 3


class FairAdmission(Places):
    """Admission policy ``fair``; the module's docstring has the rules."""

    def __init__(self, view: BudgetView) -> None:
        super().__init__(view)
        self._longest: LeastFirst[Account] = LeastFirst()

    # -- waiting requests -------------------------------------------------------------------

    def validate(self, account: Account | None, size: int) -> None:
        """Raise an error if a request's size alone exceeds a cap."""
        if self._caps.any:
            self._caps.validate(size, many_clients=account is None or account.many_clients)

    def admits_new(self, account: Account | None, namespace: str, size: int) -> bool:
        """Return True unless the account's quota or a cap blocks the request."""
        if account is None:
            return True
        if self._caps.any and self._caps.exceeded(size, many_clients=account.many_clients):
            return False
        place = self._place_of(account, namespace, size)
        if place is self._hungry or place is self._holding:
            return True
        if place is self._over_quota:
            return account.weight + size <= self._lent()
        available = self._budget.available_permits
        return place is self._last and size <= self._left_for_last(available)

    def precedes(self, waiter: Waiter) -> bool:
        """Return True if a request may be granted before all waiting requests.

        It may if no waiting request can be granted, or if it enlarges a permit and only new work
        waits.
        """
        turn = self.turn()
        return turn is None or (waiter.previous is not None and turn.previous is None)

    def add(self, waiter: Waiter) -> None:
        """Queue a waiting request: among requests to enlarge a permit, or in its account's line."""
        account = waiter.account
        if waiter.previous is not None:
            self.growth.begins(waiter, waiter.previous)
            if account is None or self.admits_growth(waiter):
                self.growth.add(waiter)
            else:
                account.parked_growth[waiter] = None
                self._put_in_place(account)
        elif account is not None:
            account.line[waiter] = None
            self._longest.put(account, -len(account.line))
            if account.first_in_line is waiter:
                self._put_in_place(account)

    def discard(self, waiter: Waiter) -> None:
        """Remove a refused or abandoned request from its line."""
        self._take_out(waiter)
        if waiter.previous is None:
            self._look_again(waiter.namespace)

    def _take_out(self, waiter: Waiter) -> None:
        account = waiter.account
        if waiter.previous is not None:
            self.growth.ends(waiter, waiter.previous)
            if waiter in self.growth:
                self.growth.discard(waiter)
            elif account is not None:
                del account.parked_growth[waiter]
                self._put_in_place(account)
        elif account is not None:
            was_first = account.first_in_line is waiter
            del account.line[waiter]
            if account.line:
                self._longest.put(account, -len(account.line))
            else:
                self._longest.discard(account)
            if was_first:
                self._put_in_place(account)

    def admits_growth(self, waiter: Waiter) -> bool:
        """Return True if a request to enlarge a permit may precede requests for new permits."""
        if waiter.account is None:
            return True
        if type(waiter.holder) is not SharedHolder:
            return self._grows_first(waiter.account, waiter)
        for account in islice(waiter.holder.members(), MEMBERS_LOOKED_AT):
            if self._grows_first(account, waiter):
                waiter.account = account
                return True
        return False

    def exchanged(self, waiter: Waiter, permit: Permit) -> None:
        """Let ``permit`` inherit the right to grow beyond the quota from the replaced permit."""
        if waiter.account is not None and waiter.account.favoured is waiter.previous:
            waiter.account.favoured = permit

    def admitted(self, waiter: Waiter, turn: Waiter) -> None:
        """Remove a granted request, and charge its account or count it as overtaking ``turn``."""
        if turn is not waiter:
            turn.passed_permits += waiter.needed
        elif waiter.account is not None and isinstance(waiter.account.place, WaitingLine):
            waiter.account.place.served(waiter.account, waiter.needed)
        self._take_out(waiter)

    def crowded_out_by(self, waiter: Waiter) -> Waiter | None:
        """Return a request to refuse for ``waiter``: the last of the account with most requests.

        None if the account of ``waiter`` does not have fewer requests.

        Growth always displaces a request while any new work waits.
        """
        longest = self._longest.first()
        if longest is None:
            return None
        new = waiter.account if waiter.previous is None else None
        own = 0 if new is None else len(new.line) + 1
        return next(reversed(longest.line)) if len(longest.line) > own else None

    # -- the next request ----------------------------------------------------------------------

    def next(self, turn: Waiter, available: int) -> Waiter | None:
        """Return the request ``turn`` if it fits, else a smaller one that may overtake, or None."""
        if turn.previous is None and turn.account is not None and turn.account.place is self._last:
            available = self._left_for_last(available)
        if turn.needed <= available:
            return turn
        small = self._smallest_like(turn)
        if small is None or small.needed > available:
            return None
        allowed = turn.passed_permits + small.needed <= self._budget.max_permits
        return small if allowed else None

    def turn(self) -> Waiter | None:
        """Return the next request: the oldest to enlarge a permit, or that of the next account."""
        if self.growth:
            return self.growth.oldest()
        account = self._settled(WaitingLine.first, self._served) or self._borrower()
        account = account or self._settled(WaitingLine.first, lambda: self._last)
        return None if account is None else account.first_in_line

    def _borrower(self) -> Account | None:
        """Return an account beyond its quota that may borrow free permits now, or None."""
        lent = self._lent()
        while (account := self._over_quota.first_within(lent)) is not None:
            waiter = account.first_in_line
            if (
                waiter is not None
                and self._place_of_waiter(account, waiter) is self._over_quota
                and account.weight + waiter.needed <= lent
            ):
                return account
            self._put_in_place(account)
        return None

    def _smallest_like(self, turn: Waiter) -> Waiter | None:
        if turn.previous is not None:
            return self.growth.smallest()
        last = turn.account is not None and turn.account.place is self._last
        account = self._settled(
            WaitingLine.smallest, (lambda: self._last) if last else self._served
        )
        return None if account is None else account.first_in_line

    def _served(self) -> WaitingLine:
        return self._hungry or self._holding

    def _settled(
        self, choose: Callable[[WaitingLine], Account | None], line: Callable[[], WaitingLine]
    ) -> Account | None:
        """Return the account that ``choose`` selects, after updating outdated lines of accounts."""
        while (account := choose(line())) is not None:
            waiter = account.first_in_line
            if waiter is not None and self._place_of_waiter(account, waiter) is account.place:
                return account
            self._put_in_place(account)
        return None

    def ends_stall(self, room: int) -> tuple[Waiter, bool] | None:
        """Return the request whose grant or refusal ends a growth stall, or None.

        Grants the oldest growth within ``room``, or refuses the youngest.
        """
        if not self.growth.every_holder_waits():
            return None
        granted = self.growth.oldest_within(room)
        ends = granted or self.growth.youngest()
        return None if ends is None else (ends, granted is not None)

    # -- changes --------------------------------------------------------------------------------

    def deferred_changed(self, account: Account) -> None:
        """Move shared requests to other members' accounts if an account's ``deferred`` changed."""
        for holder in account.shared:
            holder.put_deferred_last(account)
        for waiter in list(account.line):
            if account.deferred and type(waiter.holder) is SharedHolder:
                best = self.stands_for(waiter.holder, waiter)
                if best is not account:
                    self._move(waiter, best)
        self.holds_changed(account)
        if not account.deferred:
            for holder in list(account.shared):
                self.joined(holder, account)

    def joined(self, holder: SharedHolder, account: Account) -> None:
        """Move shared requests to a new member's account if they would be granted earlier there."""
        for waiter in list(holder.waiters):
            if waiter.previous is None:
                better = self._stands_better(account, waiter)
            else:
                better = waiter not in self.growth and self._grows_first(account, waiter)
            if better:
                self._move(waiter, account)

    def _stands_better(self, account: Account, waiter: Waiter) -> bool:
        """Return True if a request would be granted earlier in the line of ``account``."""
        stands = waiter.account
        if stands is None or stands is account:
            return False
        there = self._rank(stands.place)
        here = self._rank(self._place_of(account, waiter.namespace, waiter.size))
        if account.line:
            return there >= _LAST > here
        return here < there or stands.first_in_line is not waiter

    def _rank(self, place: Place | None) -> int:
        """Return an account's rank by its line: 0 if served first, up to 3 if it must wait."""
        if place is self._hungry:
            return 0
        if place is self._last:
            return _LAST
        return 1 if place is self._holding else _PARKED

    def left(self, holder: SharedHolder, account: Account) -> None:
        """Move shared requests from the account of a departed member to another member's."""
        for waiter in list(holder.waiters):
            if waiter.account is not account or not holder.references:
                continue
            if waiter in self.growth:
                waiter.account = holder.first_member()
            else:
                self._move(waiter, self.stands_for(holder, waiter))

    def stands_for(self, holder: SharedHolder, waiter: Waiter) -> Account:
        """Return the member account in whose line a shared request is granted earliest.

        Only the first few members are examined: examining all would cost too much.

        Among equal places, an account without earlier requests of its own wins.
        """
        only = holder.only_member()
        if only is not None:
            return only
        best, best_rank = waiter.account, (_PARKED + 1, True)
        for account in islice(holder.members(), MEMBERS_LOOKED_AT):
            rank = (self._rank(self._place_of_waiter(account, waiter)), bool(account.line))
            if rank < best_rank:
                best, best_rank = account, rank
            if rank == (0, False):
                break
        if best is None:
            raise RuntimeError("a shared request without an account")
        return best

    def _move(self, waiter: Waiter, account: Account) -> None:
        self.discard(waiter)
        waiter.account = account
        self.add(waiter)
