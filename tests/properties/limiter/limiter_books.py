"""The tests' own books of a semaphore: waiters, holders, and each request's due end.

Independent of the implementation's order and sums: the books learn requests and answers and keep
their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from limiter.permits.account import SharedHolder, Waiter
from limiter.permits.permit import AcquireOutcome, Permit

AccountKey = tuple[str | None, str]


@dataclass(eq=False)
class Sharing:
    """A share of several owners; ``references`` by account."""

    holder: SharedHolder
    namespace: str
    references: Counter[AccountKey] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        return sum(self.references.values())


@dataclass(eq=False)
class Held:
    """A granted, unreleased permit."""

    size: int
    account: AccountKey | None
    sharing: Sharing | None
    namespace: str


@dataclass(eq=False)
class Ask:
    """A request; ``grows`` is the permit to grow, None for new work."""

    size: int
    account: AccountKey | None
    sharing: Sharing | None
    namespace: str
    grows: Permit | None
    asked_at: float
    timeout_seconds: float
    number: int = field(default_factory=count().__next__)
    shrinks: bool = False
    passed_growth: int = 0
    passed_in_turn: int = 0
    passed_at_most: int = 0

    @property
    def tenant(self) -> str:
        return self.namespace.partition("/")[0] + "/"

    def asked_before(self, other: Ask) -> bool:
        """Whether this request is the older."""
        return self.number < other.number


class Books:
    """Waiters and holders, in order of request."""

    def __init__(self) -> None:
        self.held: dict[Permit, Held] = {}
        self.asks: dict[Waiter, Ask] = {}
        # Requests in creation or grant: they may be in the queue, or were until now.
        self.asking: list[Ask] = []
        self.sharings: list[Sharing] = []
        self.ended: Counter[AcquireOutcome] = Counter()

    # -- sums ---------------------------------------------------------------------------------

    @property
    def acquired(self) -> int:
        """The held sum."""
        return sum(one.size for one in self.held.values())

    def needed(self, ask: Ask) -> int:
        """The missing amount."""
        return ask.size - self.size_of(ask.grows)

    def size_of(self, permit: Permit | None) -> int:
        """A permit's size; 0 after release."""
        held = None if permit is None else self.held.get(permit)
        return 0 if held is None else held.size

    def alone(self, account: AccountKey) -> int:
        """An account's unshared sum."""
        return sum(one.size for one in self.held.values() if one.account == account)

    def parts(self, account: AccountKey) -> int:
        """An account's parts of its shares."""
        return sum(
            self.held_by(one) * one.references[account] // one.total
            for one in self.sharings
            if one.references[account]
        )

    def held_by(self, sharing: Sharing) -> int:
        """An account's shares."""
        return sum(one.size for one in self.held.values() if one.sharing is sharing)

    def in_group(self, prefix: str) -> int:
        """The held sum of a namespace or a tenant (``tenant/``)."""
        return sum(one.size for one in self.held.values() if one.namespace.startswith(prefix))

    def holds(self, account: AccountKey) -> bool:
        """Whether an account has any permit, alone or shared."""
        return any(
            one.account == account
            or (one.sharing is not None and one.sharing.references[account] > 0)
            for one in self.held.values()
        )

    # -- leaving ------------------------------------------------------------------------------

    def leave(self, sharing: Sharing, account: AccountKey | None) -> None:
        """Drop a reference; the last reference drops the share."""
        if account is not None and sharing.references[account]:
            sharing.references[account] -= 1
        if not sharing.total:
            self._drop(lambda one: one.sharing is sharing)

    def forget(self, owner: str) -> None:
        """Remove an owner with all its permits."""
        for sharing in self.sharings:
            for account in [one for one in sharing.references if one[0] == owner]:
                while sharing.references[account]:
                    self.leave(sharing, account)
        self._drop(lambda one: one.account is not None and one.account[0] == owner)

    def _drop(self, belongs: Callable[[Held], bool]) -> None:
        for permit in [permit for permit, one in self.held.items() if belongs(one)]:
            del self.held[permit]

    # -- accounts -----------------------------------------------------------------------------

    def accounts(self) -> set[AccountKey]:
        """All accounts that hold, wait or share."""
        found = {one.account for one in self.held.values()}
        found |= {one.account for one in self.waiting()}
        for sharing in self.sharings:
            found |= {account for account, count in sharing.references.items() if count}
        return {one for one in found if one is not None}

    def waiting(self) -> list[Ask]:
        """Waiters, the oldest first."""
        asks = {*self.asks.values(), *(one for one in self.asking if not one.shrinks)}
        return sorted(asks, key=lambda one: one.number)

    def growths(self) -> list[Ask]:
        """Waiting growth, the oldest first."""
        return [one for one in self.waiting() if one.grows is not None]

    def new_work(self) -> list[Ask]:
        """Waiting new requests, the oldest first."""
        return [one for one in self.waiting() if one.grows is None]

    def all_wait_to_grow(self) -> bool:
        """Whether permits are held and all of them wait to grow."""
        holding = [permit for permit, one in self.held.items() if one.size]
        growing = [one.grows for one in self.growths()]
        return bool(holding) and all(permit in growing for permit in holding)
