"""A semaphore of policy fair: no client takes everything, starves or stalls.

The rules are restated in sums over the test's own books; see limiter.admission.fair.
"""

from typing import ClassVar

from hypothesis import settings

from limiter.admission.caps import AdmissionCaps
from limiter.admission.places import LENT_DIVISOR
from limiter.admission.rules import AdmissionPolicy, AdmissionRules
from limiter.permits.permit import AcquireOutcome
from tests.properties.limiter.limiter_books import AccountKey, Ask
from tests.properties.limiter.limiter_history import MANY_CLIENTS, LimiterHistory
from tests.support.examples import many

OVERDRAFT_MAX = 3


def fair(per_connection: int = 0, per_namespace: int = 0, per_tenant: int = 0) -> AdmissionRules:
    caps = AdmissionCaps(per_connection, per_namespace, per_tenant)
    return AdmissionRules(AdmissionPolicy.FAIR, OVERDRAFT_MAX, caps)


class FairHistory(LimiterHistory):
    """Growth, then clients without permits, then within the share; bounded overtaking."""

    admissions: ClassVar[list[AdmissionRules]] = [fair()]
    anonymous_have_an_account: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self.overdrawn = False
        self.turn_before: Ask | None = None

    # -- the rules, in words of the books -----------------------------------------------------

    def hungry(self, account: AccountKey) -> bool:
        """Accounts without permits, and accounts of many clients."""
        return account[0] in MANY_CLIENTS or not self.books.holds(account)

    def capped(self, ask: Ask) -> bool:
        """Whether its namespace or tenant is at its cap."""
        caps = self.admission.caps
        return any(
            0 < cap < self.books.in_group(group) + ask.size
            for cap, group in ((caps.per_namespace, ask.namespace), (caps.per_tenant, ask.tenant))
        )

    def over_own_cap(self, account: AccountKey, size: int) -> bool:
        cap = self.admission.caps.per_connection
        return account[0] not in MANY_CLIENTS and 0 < cap < self.weight(account) + size

    def weight(self, account: AccountKey) -> int:
        return self.books.alone(account) + self.books.parts(account)

    def fair_share(self) -> int:
        """Return a share, with a part left for the next client."""
        return self.limit // (len(self.books.accounts()) + 1)

    def lent(self) -> int:
        """Return the loan beyond its share while no other client is due."""
        return self.available // LENT_DIVISOR

    def shares(self, account: AccountKey) -> bool:
        """Whether its parts of shares are estimated, so that its share is uncertain."""
        return any(one.references[account] for one in self.books.sharings)

    # -- certain waiters ----------------------------------------------------------------------

    def goes_first(self, ask: Ask) -> bool:
        """Return an account's oldest growth, within the share or of all its permits."""
        account = ask.account
        if ask.grows is None or account is None or self.shares(account):
            return False
        if self.first_in_line(account) is not ask:
            return False
        others = self.books.alone(account) - self.books.size_of(ask.grows)
        within = self.weight(account) + self.books.needed(ask) <= self.fair_share()
        return account[0] in MANY_CLIENTS or within or not others

    def surely_in_line(self, ask: Ask) -> bool:
        """Whether not parked at a cap: caps release in order, so only a lone waiter is certain."""
        alone = not any(
            one is not ask and one.tenant == ask.tenant for one in self.books.new_work()
        )
        caps = self.admission.caps
        return not self.capped(ask) and (alone or not (caps.per_namespace or caps.per_tenant))

    def first_in_line(self, account: AccountKey) -> Ask | None:
        asks = [*self.books.growths(), *self.books.new_work()]
        return next((one for one in asks if one.account == account), None)

    def stands_first(self, ask: Ask) -> bool:
        """Whether first of its account's own; a shared request might precede."""
        account = ask.account
        if account is None or self.first_in_line(account) is not ask:
            return False
        return not any(
            one.sharing and one.sharing.references[account] for one in self.books.waiting()
        )

    def line(self) -> list[Ask]:
        """Return the certain members of the served line: the hungry, else those in their share."""
        asks = [one for one in self.books.new_work() if self.surely_in_line(one)]
        hungry = [one for one in asks if self.is_hungry_for(one)]
        if hungry or any(one.sharing for one in self.books.new_work()):
            return hungry
        within = [one for one in asks if self.is_within(one, self.fair_share())]
        return within or self.borrowers()

    def is_hungry_for(self, ask: Ask) -> bool:
        if ask.sharing is not None:
            sharers = [one for one, count in ask.sharing.references.items() if count]
            return all(self.hungry(one) and self.waits_for_nothing_but(ask, one) for one in sharers)
        return self.stands_first(ask) and ask.account is not None and self.hungry(ask.account)

    def waits_for_nothing_but(self, ask: Ask, account: AccountKey) -> bool:
        others = [one for one in self.books.waiting() if one is not ask]
        return not any(
            one.account == account or (one.sharing and one.sharing.references[account])
            for one in others
        )

    def is_within(self, ask: Ask, bound: int) -> bool:
        account = ask.account
        if account is None or not self.stands_first(ask) or self.shares(account):
            return False
        fits = self.weight(account) + ask.size <= bound
        return fits and not self.over_own_cap(account, ask.size)

    def borrowers(self) -> list[Ask]:
        """Return borrowers: only when all waiters hold more than their share."""
        asks = [one for one in self.books.new_work() if self.first_in_line_of(one)]
        certain = all(one.account and not self.shares(one.account) for one in asks)
        if not certain or any(self.is_within(one, self.fair_share()) for one in asks):
            return []
        return [
            one for one in asks if self.surely_in_line(one) and self.is_within(one, self.lent())
        ]

    def certain(self) -> bool:
        """Whether every waiter's membership of the line is certain."""
        shared = any(one.sharing for one in self.books.new_work())
        return not shared and self.admission.caps == AdmissionCaps()

    def first_in_line_of(self, ask: Ask) -> bool:
        return ask.account is None or self.first_in_line(ask.account) is ask

    # -- grants -------------------------------------------------------------------------------

    def check_grant(self, ask: Ask, *, waited: bool) -> None:
        needed = self.books.needed(ask)
        if self.limit <= 0 or self.books.acquired <= self.limit:
            self.overdrawn = False
        if needed > self.available:
            self.check_overdraft(ask, needed)
        elif ask.grows is None:
            self.check_new_work(ask)
        ends_stall = ask.grows is not None and self.all_wait_to_grow(ask)
        self.check_bound(ask, needed, bounded=not ends_stall)

    def all_wait_to_grow(self, ask: Ask) -> bool:
        growing = [*(one.grows for one in self.books.growths()), ask.grows]
        return all(permit in growing for permit, one in self.books.held.items() if one.size)

    def check_overdraft(self, ask: Ask, needed: int) -> None:
        assert not self.overdrawn
        assert self.books.acquired + needed <= self.limit + OVERDRAFT_MAX
        assert self.all_wait_to_grow(ask)
        room = self.available + OVERDRAFT_MAX
        older = [one for one in self.books.growths() if one.asked_before(ask)]
        assert not any(self.books.needed(one) <= room for one in older)
        self.overdrawn = True

    def check_new_work(self, ask: Ask) -> None:
        others = [one for one in self.books.waiting() if one is not ask]
        assert not any(self.goes_first(one) for one in others)
        assert not self.capped(ask)
        account = ask.account
        if account is None or self.hungry(account):
            return
        hungry = [one for one in others if self.surely_in_line(one) and self.is_hungry_for(one)]
        assert not hungry
        weight = self.books.alone(account) + self.books.parts(account) // 2
        share = self.fair_share()
        others = [one for one in others if one.account != account and self.surely_in_line(one)]
        within = [one for one in others if self.is_within(one, share)]
        assert weight + ask.size <= (share if within else max(share, self.lent()))
        cap = self.admission.caps.per_connection
        assert not 0 < cap < weight + ask.size

    def check_bound(self, ask: Ask, needed: int, *, bounded: bool) -> None:
        """Check that at most ``limit`` overtake a due request; a stall ends anyhow."""
        turn = self.turn()
        stays = turn is not None and turn is self.turn_before
        # Growth precedes new work without a bound: it belongs to admitted work.
        if turn and stays and bounded and (turn.grows is None) == (ask.grows is None):
            turn.passed_in_turn += needed
            assert turn.passed_in_turn <= self.limit
        self.turn_before = turn
        for one in self.books.waiting():
            one.passed_at_most += needed

    def turn(self) -> Ask | None:
        """Return the account due by published figures; None if ambiguous."""
        contention = self.semaphore.contention.current()
        if contention is None:
            return None
        named = (contention.owner, contention.namespace, contention.needed_permits)
        found = [
            one
            for one in self.books.asks.values()
            if one.account and (one.account[0], one.namespace, self.books.needed(one)) == named
        ]
        shared = any(one.sharing for one in self.books.asks.values())
        return found[0] if len(found) == 1 and not shared else None

    def check_refusal_at_once(self, ask: Ask, outcome: AcquireOutcome) -> None:
        """Check that growth finds a place while new requests do, and so do accounts without one."""
        if outcome is not AcquireOutcome.QUEUE_FULL:
            return
        assert len(self.books.asks) >= self.queue > 0
        waiting = [one.account for one in self.books.new_work()]
        if ask.grows is not None:
            assert not waiting
        elif ask.account is not None and None not in waiting:
            assert all(waiting.count(one) <= waiting.count(ask.account) + 1 for one in waiting)

    def check_refusal(self, ask: Ask, outcome: AcquireOutcome) -> None:
        if outcome is AcquireOutcome.STALLED:
            assert self.all_wait_to_grow(ask)
            assert not any(ask.asked_before(one) for one in self.books.growths())
        if outcome is AcquireOutcome.QUEUE_FULL:
            self.check_crowding(ask)

    def check_crowding(self, ask: Ask) -> None:
        """Check that a refused request's account has most of a full queue's waiters."""
        if ask.account is None or any(one.sharing for one in self.books.waiting()):
            return
        waiting = [one.account for one in self.books.asks.values() if one.grows is None]
        most = max((waiting.count(one) for one in waiting), default=0)
        assert ask.grows is None
        assert waiting.count(ask.account) + 1 >= most

    # -- waiters ------------------------------------------------------------------------------

    def nobody_waits_in_vain(self) -> None:
        if self.limit <= 0 or self.books.acquired <= self.limit:
            self.overdrawn = False
        assert not self.books.all_wait_to_grow()
        growths = self.books.growths()
        first = [one for one in growths if self.goes_first(one)]
        self.each_waits_for_a_reason(first, growths)
        if not growths:
            line = self.line()
            self.each_waits_for_a_reason(line, line if self.certain() else self.books.new_work())
        self.turn_before = self.turn()
        overdrawn = max(0, -self.available) if self.overdrawn else 0
        assert self.semaphore.statistics().overdraft_permits == overdrawn

    def each_waits_for_a_reason(self, line: list[Ask], before_them: list[Ask]) -> None:
        """Check that no waiter fits, or that a too large one was overtaken to the bound."""
        least = min((self.books.needed(one) for one in line), default=self.available + 1)
        assert least > self.available or any(
            self.books.needed(one) > self.available and one.passed_at_most + least > self.limit
            for one in before_them
        )

    # -- progress -----------------------------------------------------------------------------

    def come_to_rest(self) -> None:
        """Check that when every holder releases, all are granted without passing time."""
        for _ in range(len(self.books.asks) + 1):
            for permit in list(self.books.held):
                self.give_back(permit)
        assert not self.books.asks


class CappedHistory(FairHistory):
    """The same with caps of connections, namespaces and tenants."""

    admissions: ClassVar[list[AdmissionRules]] = [
        fair(per_connection=5),
        fair(per_namespace=7),
        fair(per_tenant=8),
        fair(5, 7, 9),
    ]


TestFairHistory = FairHistory.TestCase
TestFairHistory.settings = settings(max_examples=many(150), stateful_step_count=40, deadline=None)
TestCappedHistory = CappedHistory.TestCase
TestCappedHistory.settings = settings(max_examples=many(100), stateful_step_count=40, deadline=None)
