"""Policy ``fair``: nobody can take it all, nobody is starved, and nothing stalls.

1. Growth of admitted work goes before new work, and new work waits while it waits.
2. An account that holds nothing (a *hungry* one) goes before all that hold something.
3. Among equals, tenants, then namespaces, then accounts take byte-weighted turns; an account
   stands in line with its oldest request, so nine thousand queued requests are one place.
4. Beyond its first request an account holds at most limit / active accounts.
5. When the one whose turn it is does not fit, the smallest that fits may go before it, if it is
   hungry too: at most ``limit`` permits in all go before one request while it is its turn, and
   from then on everything that comes back is kept for it.
6. When all that is held waits to grow, the oldest growth may overdraw (the semaphore decides).

Bounds: places in line are bounded by the semaphore's queue; each step costs O(log n) of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from limiter.growth import GrowthQueue
from limiter.shares import Caps, OverShare
from limiter.turns import LeastFirst, Turns

if TYPE_CHECKING:
    from collections.abc import Callable

    from limiter.accounts import Account, Accounts, Place, SharedHolder
    from limiter.admission import ShareCaps
    from limiter.permit import Permit, Waiter


_PARKED = 2


class HasLimit(Protocol):
    """The semaphore, as far as its policy is concerned."""

    @property
    def max_permits(self) -> int:
        """The limit."""


class Line:
    """Accounts that could be admitted: by turns, and by the size of what they ask for."""

    def __init__(self) -> None:
        self._turns: Turns[Account] = Turns()
        self._by_size: LeastFirst[Account] = LeastFirst()
        self._namespaces: dict[Account, str] = {}

    def __len__(self) -> int:
        return len(self._namespaces)

    def add(self, account: Account, waiter: Waiter) -> None:
        """See Place."""
        self._namespaces[account] = waiter.namespace
        self._turns.add(waiter.namespace, account)
        self._by_size.put(account, waiter.size)

    def discard(self, account: Account) -> None:
        """See Place."""
        self._turns.discard(self._namespaces.pop(account), account)
        self._by_size.discard(account)

    def served(self, account: Account, size: int) -> None:
        """Charge an account that is still standing here for its turn."""
        self._turns.served(self._namespaces[account], account, size)

    def first(self) -> Account | None:
        """Return whose turn it is."""
        return self._turns.first()

    def smallest(self) -> Account | None:
        """Return who asks for least."""
        return self._by_size.first()


class OverOwnCap:
    """Accounts that wait for themselves: the cap of a connection is reached."""

    def add(self, account: Account, waiter: Waiter) -> None:
        """Nothing to keep: the account is looked at whenever it gives something back."""

    def discard(self, account: Account) -> None:
        """Nothing was kept."""


class FairAdmission:
    """See the module.

    Args:
        semaphore: Asked for its limit, which may change.
        accounts: Those of the semaphore.
        caps: Configured caps of connections, namespaces and tenants.
    """

    def __init__(self, semaphore: HasLimit, accounts: Accounts, caps: ShareCaps) -> None:
        self._semaphore = semaphore
        self._accounts = accounts
        self._caps = Caps(caps)
        self._growth = GrowthQueue()
        self._hungry, self._holding = Line(), Line()
        self._longest: LeastFirst[Account] = LeastFirst()
        self._over_share, self._over_own_cap = OverShare(), OverOwnCap()

    # -- who waits ----------------------------------------------------------------------------

    def validate(self, account: Account | None, size: int) -> None:
        """See Admission."""
        if self._caps.any:
            self._caps.validate(size, many_clients=account is None or account.many_clients)

    def admits_new(self, account: Account | None, namespace: str, size: int) -> bool:
        """Only the account's own share and the caps can be in the way."""
        if account is None:
            return True
        place = self._place_of(account, namespace, size)
        return place is self._hungry or place is self._holding

    def add(self, waiter: Waiter) -> None:
        """See Admission."""
        if waiter.previous is not None:
            self._growth.add(waiter, waiter.previous)
        elif (account := waiter.account) is not None:
            account.line[waiter] = None
            self._longest.put(account, -len(account.line))
            if len(account.line) == 1:
                self._put_in_place(account)

    def discard(self, waiter: Waiter) -> None:
        """See Admission."""
        if waiter.previous is not None:
            self._growth.discard(waiter, waiter.previous)
        elif (account := waiter.account) is not None:
            was_first = account.first_in_line is waiter
            del account.line[waiter]
            if account.line:
                self._longest.put(account, -len(account.line))
            else:
                self._longest.discard(account)
            if was_first:
                self._put_in_place(account)

    def admitted(self, waiter: Waiter) -> bool:
        """Charge a turn to whose it was; who goes before another counts against his wait."""
        turn = self.turn()
        passes = turn is not None and turn is not waiter
        if turn is not None and passes:
            turn.passed_permits += waiter.needed
        elif waiter.previous is None and waiter.account is not None:
            (self._hungry or self._holding).served(waiter.account, waiter.size)
        self.discard(waiter)
        return passes

    def crowded_out_by(self, waiter: Waiter) -> Waiter | None:
        """The last request of who has most in the queue makes room for who has fewer.

        Growth finds room in any case, as long as anything new waits.
        """
        longest = self._longest.first()
        if longest is None:
            return None
        own = 0 if waiter.account is None else len(waiter.account.line) + 1
        return next(reversed(longest.line)) if len(longest.line) > own else None

    # -- who is next --------------------------------------------------------------------------

    def next(self, turn: Waiter, available: int) -> Waiter | None:
        """See Admission."""
        if turn.needed <= available:
            return turn
        small = self._smallest_like(turn)
        if small is None or small.needed > available:
            return None
        allowed = turn.passed_permits + small.needed <= self._semaphore.max_permits
        return small if allowed else None

    def turn(self) -> Waiter | None:
        """See Admission."""
        if self._growth:
            return self._growth.oldest()
        account = self._settled(Line.first)
        return None if account is None else account.first_in_line

    def _smallest_like(self, turn: Waiter) -> Waiter | None:
        """Return the least of those that may go before ``turn``."""
        if turn.previous is not None:
            return self._growth.smallest()
        account = self._settled(Line.smallest)
        return None if account is None else account.first_in_line

    def _settled(self, choose: Callable[[Line], Account | None]) -> Account | None:
        """Choose an account of the line that is served now, and that may still stand there."""
        while (account := choose(self._hungry or self._holding)) is not None:
            waiter = account.first_in_line
            if (
                waiter is not None
                and self._place_of(account, waiter.namespace, waiter.size) is account.place
            ):
                return account
            self._put_in_place(account)
        return None

    # -- places -------------------------------------------------------------------------------

    def _put_in_place(self, account: Account) -> None:
        """Let an account stand where it belongs with its oldest request."""
        if account.place is not None:
            account.place.discard(account)
        waiter = account.first_in_line
        account.place = None
        if waiter is not None:
            account.place = self._place_of(account, waiter.namespace, waiter.size)
            account.place.add(account, waiter)

    def _place_of(self, account: Account, namespace: str, size: int) -> Place:
        if self._caps.any:
            group = self._caps.blocking(namespace, size)
            if group is not None:
                return group
            if account.holds and not self._caps.connection_allows(account, size):
                return self._over_own_cap
        if account.many_clients or not account.holds:
            return self._hungry
        within = account.weight + size <= self._share()
        return self._holding if within else self._over_share

    def _share(self) -> int:
        return self._semaphore.max_permits // max(1, len(self._accounts))

    # -- what changes -------------------------------------------------------------------------

    def holds_changed(self, account: Account) -> None:
        """See Admission."""
        if account.line:
            self._put_in_place(account)

    def took_on(self, permit: Permit) -> None:
        """See Admission."""
        self._growth.took_on(permit)
        if self._caps.any:
            self._caps.took_on(permit)

    def gave_back(self, permit: Permit, size: int) -> None:
        """See Admission."""
        self._growth.gave_back(permit, size)
        if self._caps.any:
            for account in self._caps.gave_back(permit, size):
                self._put_in_place(account)

    def accounts_changed(self) -> None:
        """Fewer accounts, or a higher limit, mean larger shares."""
        if not self._over_share:
            return
        share = self._share()
        while (account := self._over_share.first_within(share)) is not None:
            self._put_in_place(account)

    def joined(self, holder: SharedHolder, account: Account) -> None:
        """A request that is shared waits where the best placed of its sharers stands."""
        for waiter in list(holder.waiters):
            if waiter.previous is None and self._stands_better(account, waiter):
                self._move(waiter, account)

    def _stands_better(self, account: Account, waiter: Waiter) -> bool:
        """Whether a request is better off in the line of ``account`` than where it is."""
        stands = waiter.account
        if stands is None or stands is account:
            return False
        there, here = (
            self._rank(stands.place),
            self._rank(self._place_of(account, waiter.namespace, waiter.size)),
        )
        if account.line:
            return there == _PARKED > here
        return here < there or stands.first_in_line is not waiter

    def _rank(self, place: Place | None) -> int:
        """Return 0 for who is served first, 1 for who comes after those, 2 for who is parked."""
        if place is self._hungry:
            return 0
        return 1 if place is self._holding else _PARKED

    def left(self, holder: SharedHolder, account: Account) -> None:
        """Who stood in line for the others has left: another of them does."""
        other = holder.first_member()
        for waiter in list(holder.waiters):
            if waiter.account is account and waiter.previous is None and other is not None:
                self._move(waiter, other)

    def _move(self, waiter: Waiter, account: Account) -> None:
        self.discard(waiter)
        waiter.account = account
        self.add(waiter)

    # -- stalls -------------------------------------------------------------------------------

    def every_holder_waits(self) -> bool:
        """See Admission."""
        return self._growth.every_holder_waits()

    def overdraft(self, room: int) -> Waiter | None:
        """See Admission."""
        return self._growth.oldest_within(room)

    def youngest_growth(self) -> Waiter | None:
        """See Admission."""
        return self._growth.youngest()
