"""Whatever happens to a semaphore of policy fair: nobody takes it all, starves or stalls.

The rules are stated here anew, in sums over the test's own books; see limiter.fair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from hypothesis import settings

from limiter.admission import AdmissionPolicy, AdmissionRules, ShareCaps
from limiter.permit import AcquireOutcome
from tests.properties.limiter_history import MANY_CLIENTS, LimiterHistory

if TYPE_CHECKING:
    from limiter.permit import Permit
    from tests.properties.limiter_books import AccountKey, Ask

OVERDRAFT_MAX = 3


def fair(per_connection: int = 0, per_namespace: int = 0, per_tenant: int = 0) -> AdmissionRules:
    caps = ShareCaps(per_connection, per_namespace, per_tenant)
    return AdmissionRules(AdmissionPolicy.FAIR, OVERDRAFT_MAX, caps)


class FairHistory(LimiterHistory):
    """Growth, then who holds nothing, then within the share; a bound for who is passed."""

    rules_choices: ClassVar[list[AdmissionRules]] = [fair()]
    anonymous_have_an_account: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self.overdrawn = False
        self.turn_before: Ask | None = None

    # -- the rules, in words of the books -----------------------------------------------------

    def hungry(self, account: AccountKey) -> bool:
        """Who holds nothing, and who stands for many clients."""
        return account[0] in MANY_CLIENTS or not self.books.holds(account)

    def capped(self, ask: Ask) -> bool:
        """Whether its namespace or tenant may not hold so much now."""
        caps = self.rules.caps
        tenant = ask.namespace.partition("/")[0] + "/"
        return any(
            0 < cap < self.books.in_group(group) + ask.size
            for cap, group in ((caps.per_namespace, ask.namespace), (caps.per_tenant, tenant))
        )

    def over_own_cap(self, account: AccountKey, size: int) -> bool:
        cap = self.rules.caps.per_connection
        return account[0] not in MANY_CLIENTS and 0 < cap < self.weight(account) + size

    def weight(self, account: AccountKey) -> int:
        return self.books.alone(account) + self.books.parts(account)

    def share(self) -> int:
        """One part is left for whoever comes next."""
        return self.limit // (len(self.books.accounts()) + 1)

    def surely_in_line(self, ask: Ask) -> bool:
        """Not parked at a cap: those are let go in order, so only one that is alone is certain."""
        caps = self.rules.caps
        tenant = ask.namespace.partition("/")[0] + "/"
        alone = not any(
            one is not ask and one.namespace.startswith(tenant) for one in self.books.new_work()
        )
        return not self.capped(ask) and (alone or not (caps.per_namespace or caps.per_tenant))

    def first_in_line(self, account: AccountKey) -> Ask | None:
        return next((one for one in self.books.new_work() if one.account == account), None)

    def line(self) -> list[Ask]:
        """Who certainly stands in the line that is served: the hungry, or else those within."""
        asks = [one for one in self.books.new_work() if self.surely_in_line(one)]
        return [one for one in asks if self.is_hungry_for(one)] or [
            one for one in asks if self.is_within_share(one)
        ]

    def is_hungry_for(self, ask: Ask) -> bool:
        if ask.sharing is not None:
            sharers = [one for one, count in ask.sharing.references.items() if count]
            return any(self.hungry(one) and not self.first_in_line(one) for one in sharers)
        assert ask.account is not None
        return self.hungry(ask.account) and self.stands_first(ask)

    def is_within_share(self, ask: Ask) -> bool:
        account = ask.account
        if account is None or not self.stands_first(ask) or self.shares(account):
            return False
        within = self.weight(account) + ask.size <= self.share()
        return within and not self.over_own_cap(account, ask.size)

    def stands_first(self, ask: Ask) -> bool:
        """First of its account's own; a shared request might stand before it."""
        account = ask.account
        assert account is not None
        waits_with_others = any(
            one.sharing is not None and one.sharing.references[account]
            for one in self.books.new_work()
        )
        return self.first_in_line(account) is ask and not waits_with_others

    def shares(self, account: AccountKey) -> bool:
        """Its parts in what is shared are counted roughly, so its share is not certain."""
        return any(one.references[account] for one in self.books.sharings)

    # -- what is granted ----------------------------------------------------------------------

    def check_grant(self, ask: Ask, *, waited: bool) -> None:
        needed = self.books.needed(ask)
        if self.books.acquired <= self.limit:
            self.overdrawn = False
        if needed > self.available:
            self.check_overdraft(ask, needed)
        elif ask.grows is None:
            self.check_new_work(ask)
        else:
            self.check_growth(ask, needed)

    def check_overdraft(self, ask: Ask, needed: int) -> None:
        assert not self.overdrawn
        assert ask.grows is not None
        assert self.books.acquired + needed <= self.limit + OVERDRAFT_MAX
        growing = [*(one.grows for one in self.books.growths()), ask.grows]
        assert all(permit in growing for permit, one in self.books.held.items() if one.size)
        self.overdrawn = True
        for one in self.books.growths():
            one.passed_at_most += needed

    def check_growth(self, ask: Ask, needed: int) -> None:
        """Who goes before the oldest counts against it, up to the limit."""
        oldest = next((one for one in self.books.asks.values() if one.grows is not None), None)
        if oldest is not None and oldest.asked_before(ask):
            oldest.passed_in_turn += needed
            assert oldest.passed_in_turn <= self.limit
            oldest.passed_at_most += needed

    def check_new_work(self, ask: Ask) -> None:
        assert not self.books.growths() or self.books.growths() == [ask]
        assert not self.capped(ask)
        self.check_bound(ask)
        for one in self.books.new_work():
            one.passed_at_most += ask.size
        account = ask.account
        if account is None or self.hungry(account):
            return
        others = [one for one in self.books.new_work() if one is not ask]
        assert not any(self.surely_in_line(one) and self.is_hungry_for(one) for one in others)
        alone = self.books.alone(account) + self.books.parts(account) // 2
        assert alone + ask.size <= self.limit // (len(self.books.accounts() | {account}) + 1)
        cap = self.rules.caps.per_connection
        assert not 0 < cap < alone + ask.size

    def check_bound(self, ask: Ask) -> None:
        """At most ``limit`` go before one request while it is its turn."""
        turn = self.turn()
        if turn is not None and turn is self.turn_before and turn is not ask:
            turn.passed_in_turn += ask.size
            assert turn.passed_in_turn <= self.limit
        self.turn_before = turn

    def turn(self) -> Ask | None:
        """Whose turn it is, by what is published."""
        contention = self.semaphore.contention()
        for one in self.books.asks.values():
            if contention is not None and one.account is not None and one.grows is None:
                named = (contention.owner, contention.namespace, contention.needed_permits)
                if named == (one.account[0], one.namespace, one.size):
                    return one if self.stands_first(one) else None
        return None

    def check_refusal(self, ask: Ask, outcome: AcquireOutcome) -> None:
        if outcome is AcquireOutcome.STALLED:
            growing = [*(one.grows for one in self.books.growths()), ask.grows]
            assert all(permit in growing for permit, one in self.books.held.items() if one.size)
            assert not any(ask.asked_before(one) for one in self.books.growths())
        if outcome is AcquireOutcome.QUEUE_FULL:
            self.check_crowding(ask)

    def check_crowding(self, ask: Ask) -> None:
        """Who makes room in a full queue is of those who have most in it."""
        if ask.account is None or any(one.sharing for one in self.books.new_work()):
            return
        waiting = [one.account for one in self.books.asks.values() if one.grows is None]
        most = max((waiting.count(one) for one in waiting), default=0)
        assert ask.grows is None
        assert waiting.count(ask.account) + 1 >= most

    # -- who waits ----------------------------------------------------------------------------

    def nobody_waits_in_vain(self) -> None:
        if self.books.acquired <= self.limit:
            self.overdrawn = False
        growths = self.books.growths()
        if growths:
            self.growth_waits_for_a_reason(growths)
        else:
            self.new_work_waits_for_a_reason(self.line())
        self.turn_before = self.turn()
        assert self.semaphore.statistics().overdraft_permits == (
            max(0, -self.available) if self.overdrawn and self.limit > 0 else 0
        )

    def growth_waits_for_a_reason(self, growths: list[Ask]) -> None:
        assert not self.books.all_wait_to_grow()
        oldest, available = growths[0], self.available
        assert self.books.needed(oldest) > available
        least = min(self.books.needed(one) for one in growths)
        assert least > available or oldest.passed_at_most + least > self.limit

    def new_work_waits_for_a_reason(self, line: list[Ask]) -> None:
        least = min((one.size for one in line), default=self.available + 1)
        assert least > self.available or any(
            one.size > self.available and one.passed_at_most + least > self.limit for one in line
        )

    # -- progress -----------------------------------------------------------------------------

    def come_to_rest(self) -> None:
        """When every holder gives back, everybody is granted, and no time passes."""
        for _ in range(len(self.books.asks) + 1):
            for permit in list(self.books.held):
                self.give_back(permit)
        assert not self.books.asks

    def give_back(self, permit: Permit) -> None:
        self.books.held.pop(permit, None)
        self.semaphore.release(permit)


class CappedHistory(FairHistory):
    """The same with caps of connections, namespaces and tenants."""

    rules_choices: ClassVar[list[AdmissionRules]] = [
        fair(per_connection=5),
        fair(per_namespace=7),
        fair(per_tenant=8),
        fair(5, 7, 9),
    ]


TestFairHistory = FairHistory.TestCase
TestFairHistory.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestCappedHistory = CappedHistory.TestCase
TestCappedHistory.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
